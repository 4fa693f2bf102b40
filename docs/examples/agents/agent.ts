// An agent that says again what it was told, word by word. Needs: npm install ws tsx
//     PONTOON_URL=http://127.0.0.1:8080 PONTOON_AGENT_KEY=... node --import tsx agent.ts
import WebSocket from "ws";

type Turn = { type: "turn"; turn_id: string; message: { parts: { text?: string }[] } };
type Frame = Turn | { type: "cancel"; turn_id: string } | { type: "hello_ack"; ok: boolean };

const url = (process.env.PONTOON_URL ?? "http://127.0.0.1:8080").replace(/^http(.*?)\/?$/, "ws$1/api/v1/agents/ws");

/** This is the agent: it answers one turn. A message ends the turn, unless it says "more": true. */
async function answer(turn: Turn, send: (said: object) => void, cancelled: () => boolean) {
  let text = "TypeScript heard:";
  for (const word of turn.message.parts.map((part) => part.text ?? "").join(" ").split(/\s+/)) {
    if (cancelled()) return;
    send({ type: "stream", text: (text += " " + word) }); // the answer so far, where it can be shown
    await new Promise((done) => setTimeout(done, 50));
  }
  send({ type: "message", text });
}

function connect(pause: number) {
  const ws = new WebSocket(url);
  const running = new Set<string>(); // each turn is answered on its own
  ws.on("open", () => ws.send(JSON.stringify({ type: "hello", key: process.env.PONTOON_AGENT_KEY })));
  ws.on("message", (data) => {
    const frame: Frame = JSON.parse(data.toString());
    if (frame.type === "hello_ack" && frame.ok) pause = 500;
    if (frame.type === "cancel") running.delete(frame.turn_id);
    if (frame.type !== "turn") return;
    const send = (said: object) => ws.send(JSON.stringify({ turn_id: frame.turn_id, ...said }), () => {}); // if it is lost the turn comes again
    running.add(frame.turn_id);
    const failed = (error: unknown) => send({ type: "turn_end", error: String(error) });
    answer(frame, send, () => !running.has(frame.turn_id)).catch(failed).finally(() => running.delete(frame.turn_id));
  });
  ws.on("error", (error) => console.error(error.message)).on("close", (code, why) => {
    if ([1008, 4001, 4003].includes(code)) return console.error(`the host wants no new connection: ${why}`); // refused, replaced, key revoked
    setTimeout(connect, pause * (0.5 + Math.random()), Math.min(pause * 2, 30_000));
  });
}
connect(500);
