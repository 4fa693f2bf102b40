// What a message is made of: one element for each piece.

import { card, rows } from "./card.js";
import { form } from "./form.js";
import { markdown } from "./markdown.js";
import { attached, file, image, sound } from "./media.js";
import { order, products } from "./shop.js";
import { bubble, el, link, paragraph, safeURL } from "./text.js";

// piecesOf are those of an entry: the host's, or what the user said.
export function piecesOf(entry) {
	if (entry.kind === "deleted") return [{ kind: "deleted" }];
	if (entry.client) return [{ kind: "own", text: entry.text, files: entry.files }];
	return entry.pieces ?? [];
}

// isSeen: a signal is for screen readers alone.
export function isSeen(piece) {
	return piece.kind !== "signal";
}

// block shows a piece. press(group, index, value, label) is told when a button
// is; submit(values, words) when a form is sent. live: it comes just now.
export function block(piece, { press, submit, live }) {
	switch (piece.kind) {
		case "own":
			return bubble("", piece.text || !piece.files ? paragraph(piece.text ?? "") : "", ...(piece.files ?? []).map(attached));
		case "text":
			return bubble("", paragraph(piece.text));
		case "markdown":
			return bubble("markdown", markdown(piece.text));
		case "card":
			return card(piece.card, press, piece.chosen);
		case "buttons": {
			const choices = rows(piece.buttons, 0, press, piece.chosen, true);
			return piece.text ? bubble("", paragraph(piece.text), choices) : choices;
		}
		case "form":
			return el("section", { className: "bubble card", attrs: { "aria-label": "Form" } },
				el("div", { className: "card-body" }, form(piece.form, piece.values, submit)));
		case "image":
			return image(piece.media);
		case "file":
			return file(piece);
		case "audio":
			return sound(piece.media);
		case "transcript":
			return bubble("speech" + (piece.interim ? " interim" : ""),
				el("p", { className: "label" }, piece.speaker === "user" ? "You said" : "Said aloud"), paragraph(piece.text));
		case "sources":
			return sources(piece.sources);
		case "products":
			return products(piece);
		case "order":
			return order(piece);
		case "line":
			return line(piece);
		case "end":
			return el("p", { className: "divider" }, el("span", { dir: "auto" }, piece.text));
		case "error":
			return el("div", { className: "bubble error", attrs: live ? { role: "alert" } : {} }, paragraph(piece.text));
		case "signal":
			return el("span", { className: "hidden" }, piece.text + ". ");
		case "deleted":
			return bubble("", el("p", { className: "lost" }, "This message was deleted."));
		default: // of an adapter that is newer than this page
			return piece.text ? bubble("", paragraph(piece.text)) : el("span", { hidden: true });
	}
}

// line is something that happened, in a few quiet words.
function line(piece) {
	const address = piece.url ? safeURL(piece.url) : "";
	return el("p", { className: "line", dir: "auto" }, piece.text, ...(address ? [" – ", link(address, "Watch")] : []));
}

// sources are where something that was said comes from.
function sources(list) {
	const one = (s) => {
		const address = s.url ? safeURL(s.url) : "";
		const title = s.title || "Source";
		return el("li", {},
			address ? link(address, title) : el("span", {}, title),
			address && title !== s.url ? el("span", { className: "size" }, " " + new URL(address).host) : "",
			s.snippet ? el("p", { className: "snippet", dir: "auto" }, s.snippet) : "");
	};
	return el("div", { className: "sources" }, el("p", { className: "label" }, list.length === 1 ? "Source" : "Sources"),
		el(list.length === 1 ? "ul" : "ol", { dir: "auto" }, ...list.map(one)));
}
