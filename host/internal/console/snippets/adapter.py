"""A chat in this terminal, as an adapter of Pontoon: lines typed go to the host, answers are printed."""
import asyncio, json, sys, threading
import websockets

URL = "{{ws}}"
TOKEN = "{{token}}"

async def talk(ws, typed):
    while True:
        await ws.send(json.dumps({"type": "message", "session_key": "terminal:me", "user_id": "me", "text": await typed.get()}))

async def session(typed):
    async with websockets.connect(URL, additional_headers={"X-Bridge-Token": TOKEN}) as ws:
        await ws.send(json.dumps({"type": "register", "platform": "terminal", "protocol": "1.1", "capabilities": ["text", "ack"]}))
        ack = json.loads(await ws.recv())
        if not ack["ok"]:
            sys.exit("the host refused: " + ack["error"])
        print("attached to", ack["channel"]["name"], flush=True)
        talking = asyncio.create_task(talk(ws, typed))
        try:
            async for frame in ws:
                frame = json.loads(frame)
                if frame["type"] == "send":
                    print(frame["text"], flush=True)
                    await ws.send(json.dumps({"type": "message_ack", "message_id": frame["message_id"], "ok": True}))
                elif frame["type"] == "error":
                    print("refused:", frame["message"], file=sys.stderr)
        finally:
            talking.cancel()

async def main():
    loop, typed = asyncio.get_running_loop(), asyncio.Queue()
    def read():
        for line in sys.stdin:
            loop.call_soon_threadsafe(typed.put_nowait, line.rstrip("\n"))
    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            await session(typed)
        except (OSError, websockets.WebSocketException) as error:
            if getattr(getattr(error, "rcvd", None), "code", 0) in (4001, 4003):
                sys.exit(f"the host wants no new connection: {error}")
            print("will try again:", error, file=sys.stderr)
        await asyncio.sleep(2)

asyncio.run(main())
