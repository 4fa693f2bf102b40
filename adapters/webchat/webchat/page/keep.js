// What this browser keeps: the key of its conversation, the user's name, and
// what was not yet taken by the host.

const memory = new Map(); // stands in where storage is refused

function get(key) {
	try {
		return localStorage.getItem(key) ?? memory.get(key) ?? "";
	} catch {
		return memory.get(key) ?? "";
	}
}

function set(key, value) {
	memory.set(key, value);
	try {
		localStorage.setItem(key, value);
	} catch {
		// full or refused: it lasts as long as the page
	}
}

function remove(key) {
	memory.delete(key);
	try {
		localStorage.removeItem(key);
	} catch {
		// it was never there
	}
}

// random is 128 bits in hexadecimal digits.
export function random() {
	return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// key opens the conversation; whoever has it reads all of it.
export function key() {
	if (!/^[0-9a-f]{32}$/.test(get("webchat.key"))) set("webchat.key", random());
	return get("webchat.key");
}

export const name = { get: () => get("webchat.name"), set: (value) => set("webchat.name", value) };

const out = "webchat.out.";

// Outbox keeps what the user did until the host has it or never will, in order.
// Every entry has a place of its own in storage, so that tabs don't overwrite
// each other.
export class Outbox {
	items = new Map();

	constructor() {
		const found = [];
		try {
			for (let i = 0; i < localStorage.length; i++) {
				const at = localStorage.key(i);
				if (at.startsWith(out)) found.push(JSON.parse(localStorage.getItem(at)));
			}
		} catch {
			// nothing can be kept, or somebody wrote into it
		}
		found.sort((a, b) => a.at - b.at);
		for (const item of found) this.items.set(item.id, item);
	}

	put(item) {
		this.items.set(item.id, item);
		set(out + item.id, JSON.stringify(item));
	}

	drop(id) {
		this.items.delete(id);
		remove(out + id);
	}

	// forget makes the browser a stranger.
	forget() {
		for (const id of [...this.items.keys()]) this.drop(id);
		remove("webchat.key");
	}
}
