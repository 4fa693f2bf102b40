// The files that go with the next message: each is brought to the adapter as soon
// as it is chosen.

import { el } from "./text.js";

const byId = (id) => document.getElementById(id);
const most = 10; // files of one message
const largest = 25 * 2 ** 20; // bytes of one

export class Attach {
	#key;
	#on;
	#items = []; // {name, bytes, id, node}; id = "" while it is on its way
	#list = byId("attached");

	// on has changed() and note(text), which says what went wrong.
	constructor(key, on) {
		this.#key = key;
		this.#on = on;
		const input = byId("files");
		byId("attach").addEventListener("click", () => input.click());
		input.addEventListener("change", () => {
			for (const file of input.files) this.#add(file);
			input.value = "";
		});
		byId("text").addEventListener("paste", (event) => {
			for (const file of event.clipboardData?.files ?? []) this.#add(file);
		});
	}

	// busy: some are on their way.
	get busy() {
		return this.#items.some((i) => !i.id);
	}

	get count() {
		return this.#items.length;
	}

	// take returns the files for a message and starts anew.
	take() {
		const files = this.#items.map(({ id, name, bytes }) => ({ id, name, bytes }));
		this.#items = [];
		this.#list.replaceChildren();
		this.#show();
		return files;
	}

	async #add(file) {
		if (this.#items.length >= most) return this.#on.note("At most " + most + " files go with one message.");
		if (file.size === 0) return this.#on.note(file.name + " is empty.");
		if (file.size > largest) return this.#on.note(file.name + " is larger than 25 MB.");
		const item = { name: file.name, bytes: file.size, id: "" };
		const drop = el("button", { type: "button", className: "icon", attrs: { "aria-label": "Remove " + file.name } }, "×");
		drop.addEventListener("click", () => this.#remove(item));
		item.node = el("li", { className: "busy" }, el("span", { dir: "auto" }, file.name), drop);
		this.#items.push(item);
		this.#list.append(item.node);
		this.#show();
		try {
			const answer = await fetch("/upload", {
				method: "POST", body: file,
				headers: { "Content-Type": "application/octet-stream", "Webchat-Key": this.#key, "Webchat-Name": encodeURIComponent(file.name) },
			});
			if (!answer.ok) throw new Error((await answer.text()).trim());
			Object.assign(item, await answer.json());
			item.node.classList.remove("busy");
			this.#on.note("");
		} catch (e) {
			this.#remove(item);
			this.#on.note(file.name + " was not attached" + (e instanceof TypeError ? ": the connection is lost." : ". " + e.message));
		}
		this.#show();
	}

	#remove(item) {
		this.#items = this.#items.filter((i) => i !== item);
		item.node.remove();
		this.#show();
	}

	#show() {
		this.#list.hidden = this.#items.length === 0;
		this.#on.changed();
	}
}
