// The conversation on the screen: one node per entry, kept in order.

import { block, isSeen, piecesOf } from "./parts.js";
import { el } from "./text.js";

const most = 500; // nodes; the adapter itself keeps fewer
const focusable = "button, select, a, input, textarea, audio, [tabindex]";
const together = 10 * 60_000; // ms; a longer pause shows the time

const clock = new Intl.DateTimeFormat([], { timeStyle: "short" });
const day = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
const full = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });

export class Log {
	#box;
	#on;
	#items = []; // {key, entry, node, body, meta, keys, place: [generation, n]}
	#generation = 0;

	// on has press(entry, piece, group, index, value, label), submit(entry, piece,
	// values, words), again(entry), discard(entry), online(), and of what this
	// browser did and is still under way pressed(id, piece), the buttons by group, and
	// answered(id, piece), the values of a form.
	constructor(box, on) {
		this.#box = box;
		this.#on = on;
	}

	get empty() {
		return this.#items.length === 0;
	}

	// show adds an entry, or shows it anew; it reports whether it is new here and can
	// be seen.
	// An entry without a number has not reached the adapter: it stays at the end.
	show(entry) {
		const key = entry.client || entry.id;
		let item = this.#items.find((i) => i.key === key);
		const fresh = !item;
		if (fresh) {
			item = this.#make(key, entry);
		}
		item.entry = entry;
		item.place = [entry.n ? this.#generation : Infinity, entry.n ?? entry.at];
		this.#place(item, fresh);
		this.#render(item);
		while (this.#items.length > most) this.#items.shift().node.remove();
		this.#join();
		return fresh && item.seen;
	}

	// redraw shows again what may look different: buttons pressed, states.
	redraw(key) {
		for (const item of this.#items) {
			if (!key || item.key === key || item.entry.id === key) this.#render(item);
		}
		this.#join();
	}

	remove(key) {
		const at = this.#items.findIndex((i) => i.key === key);
		if (at < 0) return;
		this.#items.splice(at, 1)[0].node.remove();
		this.#join();
	}

	// begin starts another process's entries: numbers count from its start.
	begin(text) {
		this.#generation++;
		const last = this.#items.findLast((i) => i.place[0] !== Infinity);
		if (last) last.node.after(el("p", { className: "divider" }, text));
	}

	#place(item, fresh) {
		if (!fresh) this.#items.splice(this.#items.indexOf(item), 1);
		const before = ([g, n], [h, m]) => (g === h ? n < m : g < h);
		const at = this.#items.findIndex((i) => before(item.place, i.place));
		const next = at < 0 ? undefined : this.#items[at];
		this.#items.splice(at < 0 ? this.#items.length : at, 0, item);
		if (next) {
			if (item.node.nextElementSibling !== next.node) next.node.before(item.node);
		} else if (this.#box.lastElementChild !== item.node) {
			this.#box.append(item.node);
		}
	}

	#make(key, entry) {
		const item = {
			key, keys: [], node: el("article", { className: "msg new", title: full.format(entry.at) }),
			body: el("div", { className: "body" }), meta: el("p", { className: "meta", attrs: { "aria-live": "off" } }),
		};
		if (entry.client) item.node.classList.add("mine");
		if (unfinished(entry)) item.node.setAttribute("aria-live", "off"); // read out when it is whole
		const who = entry.client ? (entry.kind === "press" ? "You chose: " : "You: ") : "Answer: ";
		item.node.append(el("span", { className: "hidden" }, who), item.body, item.meta);
		return item;
	}

	// render makes anew the pieces that changed. The others stay as they are: what
	// plays, is scrolled or has the focus is not disturbed, nor read out again.
	#render(item) {
		const { entry, node, body } = item;
		const pieces = piecesOf(entry).map((p, i) => ({
			...p, chosen: { ...p.chosen, ...this.#on.pressed(entry.id, i) }, values: p.values ?? this.#on.answered(entry.id, i),
		}));
		const words = JSON.stringify(pieces, (key, value) => (key === "chosen" || key === "values" ? undefined : value));
		const whole = item.unfinished && !unfinished(entry);
		if (item.words !== undefined) { // where only buttons changed is nothing to read out
			node.setAttribute("aria-live", !unfinished(entry) && (whole || words !== item.words) ? "polite" : "off");
		}
		pieces.forEach((p, i) => {
			const key = JSON.stringify(p);
			if (item.keys[i] === key && !(whole && p.kind !== "error")) return; // an alert is read out at once, and only once
			this.#put(body, i, block(p, {
				press: (...what) => this.#on.press(entry, i, ...what), submit: (...what) => this.#on.submit(entry, i, ...what), live: this.#on.online(),
			}));
			item.keys[i] = key;
		});
		while (body.childElementCount > pieces.length) body.lastElementChild.remove();
		item.keys.length = pieces.length;
		Object.assign(item, { words, unfinished: unfinished(entry), seen: pieces.some(isSeen) });
		node.hidden = pieces.length === 0;
		node.classList.toggle("silent", !item.seen);
		node.classList.toggle("growing", !!entry.growing);
		node.classList.toggle("press", entry.kind === "press");
		node.dataset.state = entry.state ?? "";
		this.#meta(item);
	}

	// put makes next the child at this place; the focus stays where it was.
	#put(body, at, next) {
		const old = body.children[at];
		if (!old) {
			body.append(next);
			return;
		}
		const places = (e) => [e, ...e.querySelectorAll(focusable)];
		const focus = places(old).indexOf(document.activeElement);
		old.replaceWith(next);
		if (focus >= 0) places(next)[focus]?.focus();
	}

	#meta({ entry, meta }) {
		const parts = [];
		const say = (className, text) => parts.push(el("span", { className }, text));
		if (entry.edited) say("edited", "edited");
		switch (entry.state) {
			case "local":
				say("wait", this.#on.online() ? "Sending…" : "Kept until the connection is back");
				break;
			case "sending":
				say("state", "Sending…");
				break;
			case "waiting":
				say("wait", "Waiting for the host");
				break;
			case "sent":
				say("state", "Sent");
				break;
			case "failed":
				say("bad", "Not sent: " + (entry.reason || "unknown reason"));
				if (!entry.n || entry.kind === "text") parts.push(el("button", { type: "button", onclick: () => this.#on.again(entry) }, "Try again"));
				if (!entry.n) parts.push(el("button", { type: "button", onclick: () => this.#on.discard(entry) }, "Discard"));
		}
		const text = parts.map((p) => p.textContent).join();
		if (meta.dataset.text === text) return; // keep the focus of its buttons
		meta.dataset.text = text;
		meta.replaceChildren(...parts);
	}

	// join keeps what one side says at one moment together, puts the time where a
	// pause was, and says "Sent" only of the latest.
	#join() {
		const latest = this.#items.findLast((i) => i.entry.client);
		let before;
		for (const item of this.#items) {
			if (!item.seen) continue;
			const { entry, node } = item;
			const pause = !before || Math.abs(entry.at - before.at) >= together;
			node.classList.toggle("joined", !pause && !entry.client === !before.client);
			node.classList.toggle("quiet", entry.state === "sent" && item !== latest);
			if (pause && !item.time) {
				item.time = el("time", { dateTime: new Date(entry.at).toISOString(), className: "moment" }, moment(entry.at));
				node.prepend(item.time);
			} else if (!pause && item.time) {
				item.time.remove();
				item.time = undefined;
			}
			before = entry;
		}
	}
}

// unfinished: more of it comes, in its place.
function unfinished(entry) {
	return entry.growing || !!entry.pieces?.some((p) => p.interim);
}

// moment is the time of day, with the day if it is another one.
function moment(at) {
	return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at);
}
