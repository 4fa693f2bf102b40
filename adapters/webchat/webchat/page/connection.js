// The line to the adapter: one WebSocket, found again when it is lost.

const first = 400, last = 10_000; // between two tries, in ms; jittered
const deaf = 50_000; // the adapter says something every 20 s

export class Connection {
	#socket = null;
	#wait = first;
	#timer = 0;
	#heard = 0;

	// hello makes the first frame; on gets every frame; lost is told when the
	// line is gone, or could not be had.
	constructor({ hello, on, lost }) {
		Object.assign(this, { hello, on, lost });
		const now = () => this.#now();
		addEventListener("online", now);
		addEventListener("pageshow", now);
		document.addEventListener("visibilitychange", now);
		setInterval(() => this.#check(), 5_000);
		this.#dial();
	}

	// send reports whether the frame went out; that it arrived, the adapter says.
	send(frame) {
		if (this.#socket?.readyState !== WebSocket.OPEN) return false;
		this.#socket.send(JSON.stringify(frame));
		return true;
	}

	// settled: the line is good, so the next loss is tried again at once.
	settled() {
		this.#wait = first;
	}

	#dial() {
		clearTimeout(this.#timer);
		const socket = new WebSocket((location.protocol === "https:" ? "wss://" : "ws://") + location.host + "/stream");
		this.#socket = socket;
		this.#heard = Date.now();
		socket.onopen = () => socket.send(JSON.stringify(this.hello()));
		socket.onmessage = (event) => {
			if (this.#socket !== socket) return;
			this.#heard = Date.now();
			this.on(JSON.parse(event.data));
		};
		socket.onclose = () => this.#gone(socket);
	}

	#gone(socket) {
		if (this.#socket !== socket) return;
		this.#socket = null;
		this.lost();
		this.#timer = setTimeout(() => this.#dial(), this.#wait * (0.5 + Math.random() / 2));
		this.#wait = Math.min(this.#wait * 2, last);
	}

	#check() {
		const socket = this.#socket;
		if (!socket || Date.now() - this.#heard < deaf) return;
		socket.close();
		this.#gone(socket);
	}

	#now() {
		if (!this.#socket && !document.hidden) this.#dial();
	}
}
