// Drives a running host with the HttpAgent of one version of the AG-UI client:
// node client.mjs PACKAGE, with PONTOON_URL, PONTOON_KEY (scope agent:run) and
// PONTOON_ADMIN in the environment. Ends with "ok"; anything else is a failure.
import assert from "node:assert/strict";

const { HttpAgent } = await import(process.argv[2]);
const { PONTOON_URL: url, PONTOON_KEY: key, PONTOON_ADMIN: admin } = process.env;
const api = url + "/api/v1";

// What a client says of an event that it does not take as it is.
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = (...words) => warnings.push(words.join(" "));

const as = (who) => ({ Authorization: `Bearer ${who}` });

function agentOf(threadId, who = key) {
  return new HttpAgent({ url: api + "/agent/run", headers: as(who), threadId });
}

async function say(agent, content, subscriber = {}) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  const events = [];
  await agent.runAgent({}, { ...subscriber, onEvent: (e) => void events.push(e.event) });
  return events;
}

async function operator(method, path, body) {
  const answer = await fetch(api + path, {
    method, headers: { ...as(admin), "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
}

async function history(threadId) {
  const answer = await fetch(`${api}/agent/history?threadId=${encodeURIComponent(threadId)}`, { headers: as(key) });
  assert.equal(answer.status, 200);
  return (await answer.json()).messages;
}

async function streams() {
  const agent = agentOf("streams");
  const deltas = [];
  const events = await say(agent, "!stream one two three", {
    onTextMessageContentEvent: (e) => void deltas.push(e.event.delta),
  });
  assert.equal(events[0].type, "RUN_STARTED");
  assert.equal(events.at(-1).type, "RUN_FINISHED");
  assert.ok(deltas.length > 1, `${deltas.length} deltas`);
  assert.equal(deltas.join(""), "echo: one two three");
  const answer = agent.messages.at(-1);
  assert.equal(answer.role, "assistant");
  assert.equal(answer.content, "echo: one two three");
  assert.equal(answer.metadata.message_id, answer.id);
  assert.equal(answer.metadata.run_id, events[0].runId);
  assert.equal(typeof answer.metadata.latency_ms, "number");

  await say(agent, "hello");
  assert.equal(agent.messages.length, 4);
  assert.equal(agent.messages.at(-1).content, "echo: hello");
  await agent.runAgent(); // nothing is new: nothing is said twice
  assert.deepEqual(agent.messages.map((m) => m.content), ["!stream one two three", "echo: one two three", "hello", "echo: hello"]);

  const kept = await history("streams");
  assert.deepEqual(kept.map((m) => [m.id, m.role, m.content]),
    agent.messages.map((m) => [m.id, m.role, [{ type: "text", text: m.content }]]));
}

async function forms() {
  const agent = agentOf("forms");
  const events = await say(agent, "!form");
  const form = events.find((e) => e.type === "CUSTOM" && e.name === "ui");
  assert.equal(form.value.uiId, "echo-form");
  assert.ok(agent.messages.at(-1).content.includes("Your name"));
}

async function tools() {
  const agent = agentOf("tools");
  let called;
  const parts = [
    { type: "tool-call", toolCallId: "c1", toolName: "weather", input: { city: "Bern" }, status: "requested" },
    { type: "tool-result", toolCallId: "c1", toolName: "weather", output: "sunny" },
    { type: "text", text: "It is sunny." },
  ];
  await say(agent, "!stream a b c d e f", {
    onTextMessageStartEvent: () => {
      called ??= operator("POST", "/channels/agui/messages", { conversation_id: "tools", parts });
    },
  });
  await called;
  const call = agent.messages.find((m) => m.toolCalls?.length);
  assert.deepEqual(call.toolCalls.map((c) => [c.id, c.function.name, c.function.arguments]), [["c1", "weather", '{"city":"Bern"}']]);
  const result = agent.messages.find((m) => m.role === "tool");
  assert.deepEqual([result.toolCallId, result.content], ["c1", "sunny"]);
  assert.ok(agent.messages.some((m) => m.content === "It is sunny."));
  assert.ok(agent.messages.some((m) => m.content === "echo: a b c d e f"));
}

async function files() {
  const form = new FormData();
  form.append("file", new Blob(["some notes"], { type: "text/plain" }), "notes.txt");
  const sent = await fetch(api + "/agent/attachments", { method: "POST", headers: as(key), body: form });
  assert.equal(sent.status, 200);
  const file = await sent.json();
  assert.deepEqual(Object.keys(file).sort(), ["bucket", "mime_type", "path", "url"]);

  const agent = agentOf("files");
  await say(agent, [{ type: "text", text: "look" }, { type: "binary", mimeType: file.mime_type, url: file.url }]);
  assert.equal(agent.messages.at(-1).content, "echo: look");
  const [question] = await history("files");
  const [text, binary] = question.content;
  assert.deepEqual(text, { type: "text", text: "look" });
  const address = binary.url ?? binary.source.value;
  assert.ok(address.startsWith(`${url}/storage/v1/object/sign/${file.bucket}/${file.path}?token=`));
  assert.equal(await (await fetch(address)).text(), "some notes");
}

async function errors() {
  const forged = agentOf("errors");
  await assert.rejects(
    say(forged, [{ type: "binary", mimeType: "text/plain", url: `${url}/storage/v1/object/sign/agent-files/agent-inputs/1/x.txt?token=a.b.c` }]),
    /422/,
  );
  await assert.rejects(say(agentOf("errors", "pnk_nobody"), "hello"), /401/);

  await operator("PATCH", "/channels/agui", { allow_users: ["nobody"] });
  const failures = [];
  const events = await say(agentOf("errors"), "hello", { onRunErrorEvent: (e) => void failures.push(e.event) });
  assert.equal(failures.length, 1);
  assert.equal(failures[0].code, "rejected");
  assert.equal(events.at(-1).type, "RUN_ERROR");
  await operator("PATCH", "/channels/agui", { allow_users: [] });
}

for (const part of [streams, forms, tools, files, errors]) {
  await part();
}
assert.deepEqual(warnings.filter((w) => !w.includes("Agent execution failed")), []);
console.log("ok");
