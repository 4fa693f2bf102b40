curl -sS '{{url}}/api/v1/channels/{{channel}}/messages' \
  -H "Authorization: Bearer ${PONTOON_KEY:-$(cat {{keyfile}})}" \
  -d '{"conversation_id": "terminal:me", "text": "Hello from curl"}'
