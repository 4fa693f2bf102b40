"""An agent that says again what it was told, word by word. Python 3.9 or newer; needs: pip install websockets
    PONTOON_URL=http://127.0.0.1:8080 PONTOON_AGENT_KEY=... python3 agent.py"""
import asyncio, contextlib, json, os, re, sys, websockets
URL = re.sub("^http(.*?)/?$", r"ws\1/api/v1/agents/ws", os.environ.get("PONTOON_URL", "http://127.0.0.1:8080"))

async def answer(turn, send):
    """This is the agent: it answers one turn. A message ends the turn, unless it says "more": true."""
    text = "Python heard:"
    for word in " ".join(part.get("text", "") for part in turn["message"]["parts"]).split():
        text += " " + word
        await send(type="stream", text=text)  # the answer so far, where it can be shown
        await asyncio.sleep(0.05)
    await send(type="message", text=text)

async def take(turn, ws, running):
    send = lambda **said: ws.send(json.dumps({"turn_id": turn["turn_id"], **said}))
    try:
        await answer(turn, send)
    except websockets.ConnectionClosed:
        pass  # the next connection gets the turn again
    except Exception as error:
        await send(type="turn_end", error=repr(error))
    finally:
        del running[turn["turn_id"]]

async def main():
    async for ws in websockets.connect(URL):  # again and again, with a growing pause
        running = {}  # each turn is answered on its own
        with contextlib.suppress(websockets.ConnectionClosed):
            await ws.send(json.dumps({"type": "hello", "key": os.environ.get("PONTOON_AGENT_KEY", "")}))
            async for text in ws:
                frame = json.loads(text)
                if frame["type"] == "turn":
                    running[frame["turn_id"]] = asyncio.create_task(take(frame, ws, running))
                elif frame["type"] == "cancel" and frame["turn_id"] in running:
                    running[frame["turn_id"]].cancel()
        if ws.close_code in (1008, 4001, 4003):  # refused, replaced by a newer connection, key revoked
            sys.exit(f"the host wants no new connection: {ws.close_reason}")

asyncio.run(main())
