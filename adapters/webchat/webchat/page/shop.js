// Products and orders.

import { bubble, el, link, safeImage, safeURL } from "./text.js";

// products are cards beside each other, which scroll by themselves: with the
// keyboard too, once they have the focus.
export function products({ items, text }) {
	return el("div", { className: "products", tabIndex: 0, attrs: { role: "group", "aria-label": "Products" } },
		el("ul", {}, ...items.map(product), ...(text ? [el("li", { className: "more" }, text)] : [])));
}

function product(item) {
	const address = item.url ? safeURL(item.url) : "";
	const picture = item.image ? safeImage(item.image) : "";
	const box = el("li", { className: "product" });
	if (picture) {
		const img = el("img", { alt: "", referrerPolicy: "no-referrer" }); // the name is below it
		img.addEventListener("error", () => img.remove());
		img.src = picture;
		box.append(img);
	}
	const body = el("div", { className: "product-body" }, el("p", { className: "name", dir: "auto" }, address ? link(address, item.name) : item.name));
	if (item.about) body.append(el("p", { className: "about", dir: "auto" }, item.about));
	if (item.price) body.append(el("p", { className: "price" }, item.price));
	box.append(body);
	return box;
}

// order is a table: what, and how much it is.
export function order({ text, items, sums }) {
	const row = (name, amount, cell) => el("tr", {}, el(cell, { dir: "auto", ...(cell === "th" && { scope: "row" }) }, name), el("td", { className: "amount" }, amount ?? ""));
	const named = (item) => {
		const address = item.url ? safeURL(item.url) : "";
		const name = address ? link(address, item.name) : item.name;
		return el("span", {}, item.count ? item.count + " × " : "", name, item.about ? el("span", { className: "about" }, item.about) : "");
	};
	return bubble("order", el("table", {}, el("caption", { dir: "auto" }, text),
		el("thead", {}, el("tr", {}, ...["Item", "Amount"].map((name) => el("th", { scope: "col" }, el("span", { className: "hidden" }, name))))),
		el("tbody", {}, ...(items ?? []).map((item) => row(named(item), item.price, "td"))),
		el("tfoot", {}, ...(sums ?? []).map((s) => row(s.name, s.amount, "th")))));
}
