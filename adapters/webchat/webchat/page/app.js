// The page: joins the line, the conversation on the screen, and the composer.

import { Composer, settings } from "./composer.js";
import { Connection } from "./connection.js";
import { Outbox, key, name, random } from "./keep.js";
import { Log } from "./log.js";
import { Follow } from "./scroll.js";
import { el } from "./text.js";

const byId = (id) => document.getElementById(id);
const title = document.title;
const most = 64; // messages that wait at once; the adapter takes no more either

const away = "What you write is kept, and sent when the connection is back.";

const mine = key(); // read once: this page shows one conversation
const outbox = new Outbox();
let online = false;
let epoch = "", since = 0; // the adapter's process, and how much of it we have
let sending = ""; // the one of the outbox that the adapter was given
let unseen = 0;

const log = new Log(byId("log"), {
	online: () => online,
	press: (entry, piece, group, index, value, label) => act({ type: "press", message: entry.id, piece, group, index, value, label }),
	submit: (entry, piece, values, words) => act({ type: "submit", message: entry.id, piece, form: entry.pieces[piece].form.uiId, values, label: words }),
	again,
	discard: (entry) => forget(entry.client),
	pressed: (id, piece) => Object.fromEntries(underway("press", id, piece).map((item) => [item.group, item.index])),
	answered: (id, piece) => underway("submit", id, piece)[0]?.values,
});
const follow = new Follow(byId("scroll"), byId("content"), byId("newer"));
const composer = new Composer((text, files = []) => act({ type: "say", text, ...(files.length > 0 && { files }) }), mine);
settings(() => {
	outbox.forget();
	location.reload();
});
for (const item of outbox.items.values()) log.show(local(item));
const connection = new Connection({ hello, on: receive, lost });
addEventListener("storage", (event) => {
	if (event.key === "webchat.key" && event.newValue !== mine) location.reload(); // another tab started anew
});
document.addEventListener("visibilitychange", () => count(0));

function hello() {
	return { type: "hello", key: mine, epoch, since };
}

function receive(frame) {
	switch (frame.type) {
		case "welcome":
			return welcome(frame);
		case "entry":
			return entry(frame.entry);
		case "ready":
			return ready();
		case "typing":
			return typing(frame.on);
		case "refused":
			return refused(frame);
	}
}

function welcome(frame) {
	composer.limit(frame.max);
	if (frame.epoch === epoch) return;
	if (epoch) log.begin("The chat was restarted. What is above is only on this screen.");
	epoch = frame.epoch;
	since = 0;
	byId("log").setAttribute("aria-busy", "true"); // what is old is not read out
}

function ready() {
	online = true;
	sending = "";
	for (const item of outbox.items.values()) delete item.taken; // who knows what arrived
	connection.settled();
	status("online", "Online");
	composer.note("");
	byId("log").setAttribute("aria-busy", "false");
	log.redraw();
	blank();
	push();
}

function lost() {
	const before = online;
	online = false;
	sending = "";
	typing(false);
	status("offline", "Offline – trying again");
	composer.note(away);
	if (before) log.redraw();
	blank();
}

function entry(e) {
	since = e.rev;
	if (e.client && (e.state === "sent" || e.state === "failed")) outbox.drop(e.client);
	const fresh = log.show(e);
	if (e.client === sending) {
		sending = "";
		push();
	}
	if (e.kind === "press") log.redraw();
	if (fresh && !e.client && online) {
		follow.arrived();
		if (document.hidden) count(unseen + 1);
	}
	blank();
}

// underway is what was done to a piece of a message and is not the host's yet.
function underway(type, message, piece) {
	return [...outbox.items.values()].filter((item) => item.type === type && item.message === message && (item.piece ?? 0) === piece && !item.reason);
}

// act keeps what the user did and sends it when it can; false = it can't be kept.
function act(what) {
	if (outbox.items.size >= most) {
		composer.note("Too many messages wait. Please let some of them go first.");
		return false;
	}
	const item = { ...what, id: random(), name: name.get(), at: Date.now() };
	outbox.put(item);
	composer.note(online ? "" : away);
	log.show(local(item));
	if (item.type !== "say") log.redraw(item.message);
	follow.end();
	blank();
	push();
	return true;
}

// local is how something looks that the adapter does not have yet.
function local(item) {
	return {
		client: item.id, at: item.at, text: item.text ?? item.label,
		kind: item.type === "say" ? "text" : "press", files: item.files,
		state: item.reason ? "failed" : "local", reason: item.reason,
	};
}

// push gives the adapter the oldest that it does not have. One at a time keeps
// the order; a repetition is recognised by its id.
function push() {
	if (!online || sending) return;
	for (const item of outbox.items.values()) {
		if (item.reason || item.taken) continue;
		const { at, taken, reason, ...frame } = item;
		if (frame.files) frame.files = frame.files.map((f) => f.id);
		if (connection.send(frame)) sending = item.id;
		item.taken = true;
		return;
	}
}

function refused(frame) {
	const item = outbox.items.get(frame.id);
	if (!item) return;
	delete item.taken;
	if (frame.retry > 0) {
		setTimeout(() => { // `sending` stays: what is behind it waits too
			if (sending !== item.id) return;
			sending = "";
			push();
		}, frame.retry);
		return;
	}
	item.reason = frame.reason;
	outbox.put(item);
	log.show(local(item));
	log.redraw();
	sending = "";
	push();
}

function again(failed) {
	const item = outbox.items.get(failed.client);
	if (!item) {
		act({ type: "say", text: failed.text ?? "", ...(failed.files && { files: failed.files }) });
		return;
	}
	const { id, at, reason, taken, name: before, ...what } = item;
	forget(id);
	act(what);
}

function forget(id) {
	outbox.drop(id);
	log.remove(id);
	log.redraw();
	blank();
}

function typing(on) {
	const box = byId("typing");
	if (box.classList.toggle("on", on)) box.replaceChildren(el("span", { className: "hidden" }, "Typing…"), el("i"), el("i"), el("i"));
	else box.replaceChildren();
}

function status(state, text) {
	byId("status").dataset.state = state;
	if (byId("status-text").textContent !== text) byId("status-text").textContent = text;
}

// blank shows what to type as long as nothing was said.
function blank() {
	byId("empty").hidden = !log.empty || !epoch;
}

function count(n) {
	unseen = document.hidden ? n : 0;
	document.title = unseen > 0 ? "(" + unseen + ") " + title : title;
}
