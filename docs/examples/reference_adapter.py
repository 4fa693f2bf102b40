"""Reference adapter of the Bridge Protocol 1.0. This terminal is the platform: type a line to send it, or
"#1" to press the first button of the latest offer. Python 3.11 or newer; needs: pip install websockets

    PONTOON_URL=http://127.0.0.1:8080 PONTOON_TOKEN=... python3 reference_adapter.py"""
import asyncio, contextlib, itertools, json, os, random, re, sys, threading, time, websockets

URL = re.sub("^http(.*?)/?$", r"ws\1/api/v1/channels/bridge/ws", os.environ.get("PONTOON_URL", "http://127.0.0.1:8080"))
USER = os.environ.get("USER", "me")
REGISTER = {"type": "register", "token": os.environ.get("PONTOON_TOKEN", ""), "platform": "terminal",
            "capabilities": ["text", "card", "buttons", "image", "file", "typing", "update_message"]}
unsent, offer = [], []  # a frame that waits for a connection; values of the latest buttons, #1 is the first

def element(e):
    """A text with its buttons, as a card's elements are. A select's values begin with its prefix."""
    buttons = sum(e.get("buttons") or [], []) + ([e["button"]] if e.get("button") else [])
    buttons += [{**o, "value": e["callback_prefix"] + o["value"]} for o in e.get("options") or []]
    offer.extend(b["value"] for b in buttons)
    labels = [f"[#{n} {b['text']}]" for n, b in enumerate(buttons, len(offer) - len(buttons) + 1)]
    text = e.get("content") or e.get("text") or e.get("placeholder") or (e["type"] == "divider" and "─" * 10)
    return " ".join(filter(None, [text, *labels]))

def render(frame):
    """A frame of the host as text, with whatever of it is known: a newer host may add types and fields."""
    if frame["type"] in ("send_buttons", "send_card"):
        offer.clear()
    card, media = frame.get("card") or {}, frame.get("image") or frame.get("file") or {}
    lines = [{"update_message": "(edited)", "start_typing": "...", "error": "(refused)"}.get(frame["type"])]
    lines += [(card.get("header") or {}).get("title"), *map(element, card.get("elements") or [])]
    lines += [element(frame) if "text" in frame else frame.get("message")]
    return "\n".join(filter(None, lines + [media.get(key) for key in ("caption", "filename", "url", "path")]))

def event(line):
    """What was typed, as a frame. The host echoes reply_ctx, any JSON value, with every answer to it."""
    pressed = re.fullmatch("#[1-9][0-9]*", line) and int(line[1:]) <= len(offer)
    what = {"type": "card_action", "action": offer[int(line[1:]) - 1]} if pressed else {"type": "message", "text": line}
    return {**what, "session_key": f"terminal:local:{USER}", "user_id": USER, "reply_ctx": time.time_ns()}

async def talk(ws, typed):
    """Sends what is typed. What a broken connection did not take goes to the next one."""
    while unsent or (line := await typed.get()) is not None:
        unsent[:] = unsent or [event(line)]
        await ws.send(json.dumps(unsent[0], ensure_ascii=False))
        unsent.clear()
    typed.put_nowait(None)  # for the next connection

async def session(ws, typed):
    """Registers and shows what the host sends, until the input has ended and two seconds pass without a frame."""
    await ws.send(json.dumps(REGISTER))
    if not (ack := json.loads(await ws.recv()))["ok"]:
        sys.exit(f"the host refused this adapter: {ack['error']}")
    talking, ended, quiet = asyncio.create_task(talk(ws, typed)), False, False
    talking.add_done_callback(lambda task: task.cancelled() or task.exception())  # recv raises it as well
    try:
        while not (ended and quiet):
            ended, quiet = talking.done(), True
            with contextlib.suppress(asyncio.TimeoutError):
                text, quiet = render(json.loads(await asyncio.wait_for(ws.recv(), 2))), False
                print(text, end="\n" if text else "", flush=True)
    finally:
        talking.cancel()

async def main():
    loop, typed, delay = asyncio.get_running_loop(), asyncio.Queue(), 0.5  # typed: lines; None = the input has ended
    def read_input():
        for line in itertools.chain(open(0, closefd=False), [None]):
            loop.call_soon_threadsafe(typed.put_nowait, line and line.rstrip("\n"))
    threading.Thread(target=read_input, daemon=True).start()
    while True:
        try:
            async with websockets.connect(URL) as ws:
                delay = 0.5
                return await session(ws, typed)
        except (OSError, websockets.WebSocketException) as error:
            if getattr(getattr(error, "rcvd", None), "code", 1006) in (4001, 4003):
                sys.exit(f"the host wants no new connection: {error}")
            print(f"will try again: {error}", file=sys.stderr)
        await asyncio.sleep((delay := min(delay * 2, 30)) * random.uniform(0.5, 1.5))

with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
