// A chat in this terminal, as an adapter of Pontoon: lines typed go to the host, answers are printed.
import { createInterface } from "node:readline";

const URL = "{{ws}}";
const TOKEN = "{{token}}";
const WebSocket = globalThis.WebSocket ?? (await import("ws")).default; // Node 22 has it built in

let ws;
const say = (frame) => ws.send(JSON.stringify(frame));

function connect() {
  ws = new WebSocket(URL);
  ws.onopen = () => say({ type: "register", token: TOKEN, platform: "terminal", protocol: "1.1", capabilities: ["text", "ack"] });
  ws.onmessage = (event) => {
    const frame = JSON.parse(event.data);
    if (frame.type === "register_ack" && frame.ok) {
      console.log("attached to", frame.channel.name);
    } else if (frame.type === "register_ack") {
      console.error("the host refused:", frame.error);
      process.exit(1);
    } else if (frame.type === "send") {
      console.log(frame.text);
      say({ type: "message_ack", message_id: frame.message_id, ok: true });
    } else if (frame.type === "error") {
      console.error("refused:", frame.message);
    }
  };
  ws.onerror = () => {}; // onclose follows
  ws.onclose = ({ code, reason }) => {
    if (code === 4001 || code === 4003) {
      console.error("the host wants no new connection:", String(reason));
      process.exit(1);
    }
    console.error("will try again:", code, String(reason));
    setTimeout(connect, 2000);
  };
}

connect();
createInterface({ input: process.stdin }).on("line", (text) => {
  if (ws.readyState === 1) say({ type: "message", session_key: "terminal:me", user_id: "me", text });
  else console.error("not attached, try again");
});
