// The composer: what the user types, and the settings beside it.

import { Attach } from "./attach.js";
import { name } from "./keep.js";

const byId = (id) => document.getElementById(id);
const encoder = new TextEncoder();

export class Composer {
	#text = byId("text");
	#send = byId("send");
	#hint = byId("hint");
	#most = 120_000;
	#note = "";
	#attach;

	// say takes a text that was sent, and its files; attach has those.
	constructor(say, key) {
		this.#attach = new Attach(key, { changed: () => this.#changed(), note: (text) => this.note(text) });
		byId("composer").addEventListener("submit", (event) => {
			event.preventDefault();
			this.#submit(say);
		});
		this.#text.addEventListener("keydown", (event) => {
			// Enter that ends the choice of a character belongs to the input method.
			if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
			event.preventDefault();
			this.#submit(say);
		});
		this.#text.addEventListener("input", () => this.#changed());
		byId("help").addEventListener("click", () => say("/help"));
		for (const chip of document.querySelectorAll("[data-say]")) {
			chip.addEventListener("click", () => {
				say(chip.dataset.say);
				this.focus();
			});
		}
		try {
			this.#text.value = sessionStorage.getItem("webchat.draft") ?? "";
		} catch {
			// no draft then
		}
		this.#changed();
		if (!matchMedia("(pointer: coarse)").matches) this.focus(); // there it would raise a keyboard
	}

	focus() {
		this.#text.focus();
	}

	// limit is the longest message in bytes of UTF-8.
	limit(bytes) {
		this.#most = bytes;
		this.#changed();
	}

	// note is said below the field, unless the message is too long.
	note(text) {
		this.#note = text;
		this.#changed();
	}

	#submit(say) {
		const text = this.#text.value.replace(/\s+$/, "");
		if (!this.#ready()) return;
		if (!say(text, this.#attach.take())) return;
		this.#text.value = "";
		this.#changed();
		this.focus();
	}

	// ready: there is something to send, and all of it is here.
	#ready() {
		return (this.#text.value.trim() !== "" || this.#attach.count > 0) && !this.#attach.busy && this.#over() <= 0;
	}

	#over() {
		const length = this.#text.value.length;
		return length * 3 < this.#most ? -Infinity : encoder.encode(this.#text.value).length - this.#most;
	}

	#changed() {
		const field = this.#text, over = this.#over();
		field.style.height = "auto";
		field.style.height = field.scrollHeight + "px";
		this.#send.setAttribute("aria-disabled", String(!this.#ready()));
		let hint = this.#note;
		if (over > 0) hint = "Too long by " + over.toLocaleString() + " bytes: at most " + this.#most.toLocaleString() + " fit into one message";
		else if (over > -this.#most / 10) hint = (-over).toLocaleString() + " of " + this.#most.toLocaleString() + " bytes left";
		if (this.#hint.textContent !== hint) this.#hint.textContent = hint;
		this.#hint.dataset.bad = String(over > 0);
		try {
			sessionStorage.setItem("webchat.draft", field.value);
		} catch {
			// no draft then
		}
	}
}

// settings opens the dialog; fresh starts a new conversation.
export function settings(fresh) {
	const dialog = byId("settings"), field = byId("name");
	byId("settings-open").addEventListener("click", () => {
		field.value = name.get();
		dialog.showModal();
	});
	byId("settings-close").addEventListener("click", () => dialog.close());
	byId("settings-form").addEventListener("submit", (event) => {
		event.preventDefault();
		name.set(field.value.trim());
		dialog.close();
	});
	byId("fresh").addEventListener("click", fresh);
	dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

