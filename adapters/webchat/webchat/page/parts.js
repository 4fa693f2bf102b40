// What a message is made of, by kind. press(group, index, value, label) is told
// when a button is; chosen tells which are pressed, by group.

import { form } from "./form.js";
import { el, link, paragraph, plain, rich, safeImage, safeURL } from "./text.js";

export function content(entry, { press, submit, chosen, answered }) {
	switch (entry.kind) {
		case "card":
			return card(entry.card, press, chosen);
		case "buttons":
			return bubble("", entry.text ? paragraph(entry.text) : "", rows(entry.buttons, 0, press, chosen, true));
		case "image":
			return image(entry.media);
		case "file":
			return file(entry.media);
		case "audio":
			return sound(entry.media);
		case "form":
			return el("section", { className: "bubble card", attrs: { "aria-label": "Form" } },
				el("div", { className: "card-body" }, form(entry.form, answered, submit)));
		case "deleted":
			return bubble("", el("p", { className: "lost" }, "This message was deleted."));
		default:
			return bubble("", entry.text || !entry.files ? paragraph(entry.text ?? "") : "", ...(entry.files ?? []).map(attached));
	}
}

function bubble(kind, ...children) {
	return el("div", { className: ("bubble " + kind).trim() }, ...children);
}

// choice is one button. It stays in the tab order when it is spent, so that the
// keyboard does not lose its place.
function choice(button, spent, chosen, press) {
	const style = ["primary", "danger"].includes(button.style) ? button.style : "";
	const e = el("button", { type: "button", className: ("choice " + style).trim(), dir: "auto" }, button.text);
	if (chosen) {
		e.classList.add("chosen");
		e.append(el("span", { className: "hidden" }, " (chosen)"));
	}
	if (spent) e.setAttribute("aria-disabled", "true");
	else e.addEventListener("click", press);
	return e;
}

// rows shows buttons. once: one answer spends them all.
function rows(list, group, press, chosen, once) {
	let index = 0;
	const picked = chosen[group];
	const box = el("div", { className: "choices", attrs: { role: "group", "aria-label": "Choices" } });
	for (const row of list ?? []) {
		const line = el("div");
		for (const button of row ?? []) {
			const at = index++;
			const spent = picked !== undefined && (once || picked === at);
			line.append(choice(button, spent, picked === at, () => press(group, at, button.value, button.text)));
		}
		box.append(line);
	}
	return box;
}

function card(shown, press, chosen) {
	const body = el("div", { className: "card-body" });
	(shown.elements ?? []).forEach((element, group) => body.append(part(element, group, press, chosen)));
	const box = el("section", { className: "bubble card", attrs: { "aria-label": shown.header?.title || "Card" } });
	if (shown.header) {
		const known = ["blue", "green", "red", "orange", "yellow", "grey"].includes(shown.header.color);
		box.append(el("div", { className: "card-head" + (known ? " " + shown.header.color : "") },
			el("h2", { dir: "auto" }, shown.header.title ?? "")));
	}
	if (body.childElementCount > 0) box.append(body);
	return box;
}

function part(element, group, press, chosen) {
	switch (element.type) {
		case "markdown":
			return paragraph(element.content ?? "", rich);
		case "divider":
			return el("hr");
		case "actions":
			return rows(element.buttons, group, press, chosen, false);
		case "list_item": {
			const line = el("div", { className: "item" }, paragraph(element.text ?? "", rich));
			const b = element.button;
			if (b) line.append(choice(b, chosen[group] === 0, chosen[group] === 0, () => press(group, 0, b.value, b.text)));
			return line;
		}
		case "select":
			return select(element, group, press, chosen);
		case "note":
			return plain(el("div", { className: "text note", dir: "auto" }), element.text ?? "");
		default:
			return paragraph(element.text ?? element.content ?? "");
	}
}

let selects = 0;

// select sends on its button, not on change: a keyboard passes every option on
// its way to the right one.
function select(element, group, press, chosen) {
	const id = "select-" + ++selects;
	const options = element.options ?? [];
	const label = element.placeholder || "Choose";
	const list = el("select", { id });
	const start = options.findIndex((o) => o.value === element.init_value);
	if (start < 0) list.append(el("option", { value: "", disabled: true }, label));
	options.forEach((o, i) => list.append(el("option", { value: String(i) }, o.text || o.value)));
	list.value = chosen[group] !== undefined ? String(chosen[group]) : start < 0 ? "" : String(start);
	const go = el("button", { type: "button", className: "choice", attrs: { "aria-label": "Choose: " + label } }, "Choose");
	go.addEventListener("click", () => {
		const o = options[Number(list.value)];
		if (list.value !== "" && o) press(group, Number(list.value), (element.callback_prefix ?? "") + o.value, o.text || o.value);
		else list.focus();
	});
	return el("div", { className: "pick" }, el("label", { htmlFor: id, dir: "auto" }, label), el("div", {}, list, go));
}

function caption(media) {
	return media.caption ? paragraph(media.caption) : "";
}

function image(media) {
	const box = bubble("picture");
	const address = safeImage(media.url);
	const lost = () => {
		const where = safeURL(media.url);
		return el("p", { className: "lost" }, "This picture can't be shown. ", where ? link(where, "Open it") : "");
	};
	if (!address) {
		box.append(lost(), caption(media));
		return box;
	}
	const img = el("img", { alt: media.caption || "Picture without a description", referrerPolicy: "no-referrer" });
	const open = safeURL(media.url); // browsers don't open data urls
	const frame = open ? link(open, img) : img;
	img.addEventListener("error", () => frame.replaceWith(lost()));
	img.src = address;
	box.append(frame, caption(media));
	return box;
}

// attached is a file of the user's own; without an address it is not here yet.
function attached(f) {
	const address = f.url ? safeURL(f.url) : "";
	if (!address) return el("div", { className: "file" }, glyph(), el("span", {}, f.name));
	if (!f.image) return download(address, f.name, f.bytes);
	const img = el("img", { alt: f.name });
	const open = link(address, img);
	open.className = "own";
	img.addEventListener("error", () => open.replaceWith(el("p", { className: "lost" }, f.name + " is no longer kept here.")));
	img.src = address;
	return open;
}

function sound(media) {
	const address = safeURL(media.url);
	if (!address) return bubble("", el("p", { className: "lost" }, "This sound can't be played."), caption(media));
	return bubble("", el("audio", { controls: true, preload: "none", src: address, attrs: { "aria-label": media.caption || "Sound" } }), caption(media));
}

function file(media) {
	const address = safeURL(media.url);
	if (!address) return bubble("", el("p", { className: "lost" }, "This file can't be opened."), caption(media));
	return bubble("", download(address, media.name || decodeName(address), media.bytes), caption(media));
}

// download is a link that keeps what it leads to. Only our own files have a size.
function download(address, name, bytes) {
	const a = link(address, glyph(), el("span", {}, el("span", { className: "name", dir: "auto" }, name), el("span", { className: "size" }, address[0] === "/" ? size(bytes) : "at " + new URL(address).host)));
	a.className = "file";
	a.download = name;
	return a;
}

function decodeName(address) {
	try {
		return decodeURIComponent(new URL(address, location.href).pathname.split("/").pop()) || "File";
	} catch {
		return "File";
	}
}

function size(bytes = 0) {
	const steps = ["bytes", "KB", "MB", "GB"];
	let i = 0;
	while (bytes >= 1000 && i < steps.length - 1) {
		bytes /= 1000;
		i++;
	}
	return (i === 0 ? bytes : bytes.toFixed(1)) + " " + steps[i];
}

function glyph() {
	const ns = "http://www.w3.org/2000/svg";
	const svg = document.createElementNS(ns, "svg");
	const attrs = { viewBox: "0 0 24 24", width: 28, height: 28, fill: "none", stroke: "currentColor", "stroke-width": 1.6, "stroke-linejoin": "round", "aria-hidden": "true" };
	for (const [key, value] of Object.entries(attrs)) svg.setAttribute(key, value);
	const path = document.createElementNS(ns, "path");
	path.setAttribute("d", "M6 3h8l5 5v13H6zM14 3v5h5M9 13h6M9 17h6");
	svg.append(path);
	return svg;
}
