curl -sS '{{url}}/api/v1/channels/{{channel}}/messages' \
  -H "Authorization: Bearer ${PONTOON_KEY:-$(cat data/admin.key)}" \
  -d '{"conversation_id": "terminal:me", "text": "Hello from curl"}'
