// The conversation on the screen: one node per entry, kept in order.

import { content } from "./parts.js";
import { el } from "./text.js";

const most = 500; // nodes; the adapter itself keeps fewer
const focusable = "button, select, a, input, textarea";
const together = 10 * 60_000; // ms; a longer pause shows the time

const clock = new Intl.DateTimeFormat([], { timeStyle: "short" });
const day = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });
const full = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });

export class Log {
	#box;
	#on;
	#items = []; // {key, entry, node, shown, place: [generation, n]}
	#generation = 0;

	// on has press(entry, group, index, value, label), submit(entry, values, words),
	// again(entry), discard(entry) and pressed(id), the presses of this browser that
	// are still under way, and answered(id), what it has answered to a form.
	constructor(box, on) {
		this.#box = box;
		this.#on = on;
	}

	get empty() {
		return this.#items.length === 0;
	}

	// show adds an entry, or shows it anew; it reports whether it is new here.
	// An entry without a number has not reached the adapter: it stays at the end.
	show(entry) {
		const key = entry.client || entry.id;
		let item = this.#items.find((i) => i.key === key);
		const fresh = !item;
		if (fresh) {
			item = { key, node: el("article", { className: "msg new", title: full.format(entry.at) }) };
			if (entry.client) item.node.classList.add("mine");
			if (entry.growing) item.node.setAttribute("aria-live", "off"); // read out when it is whole
		}
		item.entry = entry;
		item.place = [entry.n ? this.#generation : Infinity, entry.n ?? entry.at];
		this.#place(item, fresh);
		this.#render(item);
		while (this.#items.length > most) this.#items.shift().node.remove();
		this.#join();
		return fresh;
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

	#render(item) {
		const { entry, node } = item;
		const chosen = { ...entry.chosen, ...this.#on.pressed(entry.id) };
		const answered = entry.values ?? this.#on.answered(entry.id);
		const shown = JSON.stringify([entry.kind, entry.text, entry.card, entry.buttons, entry.media, entry.form, entry.files, entry.growing, answered, chosen]);
		if (shown !== item.shown) {
			const same = item.text === entry.text && !item.growing || entry.growing; // only buttons changed, or it is not whole: nothing to read out
			if (item.shown !== undefined) node.setAttribute("aria-live", same ? "off" : "polite");
			const focus = [...node.querySelectorAll(focusable)].indexOf(document.activeElement);
			item.meta ??= el("p", { className: "meta", attrs: { "aria-live": "off" } });
			node.replaceChildren(
				item.time ?? "", el("span", { className: "hidden" }, entry.client ? (entry.kind === "press" ? "You chose: " : "You: ") : "Answer: "),
				content(entry, {
					press: (...what) => this.#on.press(entry, ...what), submit: (...what) => this.#on.submit(entry, ...what), chosen, answered,
				}), item.meta);
			if (focus >= 0) node.querySelectorAll(focusable)[focus]?.focus();
			item.shown = shown;
			item.text = entry.text;
			item.growing = entry.growing;
		}
		node.classList.toggle("growing", !!entry.growing);
		node.classList.toggle("press", entry.kind === "press");
		node.dataset.state = entry.state ?? "";
		this.#meta(item);
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

// moment is the time of day, with the day if it is another one.
function moment(at) {
	return new Date(at).toDateString() === new Date().toDateString() ? clock.format(at) : day.format(at);
}
