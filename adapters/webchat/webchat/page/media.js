// Pictures, sound and files.

import { bubble, el, link, paragraph, safeImage, safeURL } from "./text.js";

function caption(media) {
	return media.caption ? paragraph(media.caption) : "";
}

export function image(media) {
	const box = bubble("picture");
	const address = safeImage(media.url ?? "");
	const lost = () => {
		const where = safeURL(media.url ?? "");
		return el("p", { className: "lost" }, "This picture can't be shown. ", where ? link(where, "Open it") : "");
	};
	if (!address) {
		box.append(lost(), caption(media));
		return box;
	}
	const img = el("img", { alt: media.alt || media.caption || "Picture without a description", referrerPolicy: "no-referrer" });
	const open = safeURL(media.url); // browsers don't open data urls
	const frame = open ? link(open, img) : img;
	img.addEventListener("error", () => frame.replaceWith(lost()));
	img.src = address;
	box.append(frame, caption(media));
	return box;
}

// attached is a file of the user's own; without an address it is not here yet.
export function attached(f) {
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

export function sound(media) {
	const address = safeURL(media.url ?? "");
	const words = media.caption ? [el("p", { className: "label" }, "Transcript"), paragraph(media.caption)] : [];
	if (!address) return bubble("speech", el("p", { className: "lost" }, "This sound can't be played."), ...words);
	return bubble("speech", el("audio", { controls: true, preload: "none", src: address, attrs: { "aria-label": "Sound" } }), ...words);
}

export function file({ media, text }) {
	const address = safeURL(media.url ?? "");
	if (!address) {
		return bubble("", el("div", { className: "file" }, glyph(), el("span", {}, el("span", { dir: "auto" }, media.name || "File"),
			el("span", { className: "size" }, text || "This file can't be opened."))), caption(media));
	}
	return bubble("", download(address, media.name || decodeName(address), media.bytes), caption(media));
}

// download is a link that keeps what it leads to.
function download(address, name, bytes) {
	const a = link(address, glyph(), el("span", {}, el("span", { className: "name", dir: "auto" }, name), el("span", { className: "size" }, about(address, bytes))));
	a.className = "file";
	a.download = name;
	return a;
}

function about(address, bytes) {
	if (address[0] === "/") return size(bytes);
	return (bytes ? size(bytes) + ", " : "") + "at " + new URL(address).host;
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
