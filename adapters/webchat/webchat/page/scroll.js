// Following the conversation: only who is at its end is taken along.

const near = 64; // px from the end that count as the end

export class Follow {
	#box;
	#pill;
	#missed = 0;
	#at = true;
	#top = 0;

	constructor(box, content, pill) {
		this.#box = box;
		this.#pill = pill;
		box.addEventListener("scroll", () => {
			// The event comes late: more may have arrived since. Only a way up is the user's.
			if (box.scrollHeight - box.scrollTop - box.clientHeight < near) {
				this.#at = true;
				this.#clear();
			} else if (box.scrollTop < this.#top) {
				this.#at = false;
			}
			this.#top = box.scrollTop;
		}, { passive: true });
		pill.addEventListener("click", () => {
			this.end();
			box.focus();
		});
		const grown = new ResizeObserver(() => this.#at && this.end());
		grown.observe(content);
		grown.observe(box);
	}

	// end goes to the end and stays there.
	end() {
		this.#at = true;
		this.#box.scrollTop = this.#box.scrollHeight;
		this.#clear();
	}

	// arrived: a message that the user did not write is there.
	arrived() {
		if (this.#at) return;
		this.#missed++;
		this.#pill.hidden = false;
		this.#pill.textContent = (this.#missed === 1 ? "1 new message" : this.#missed + " new messages") + " ↓";
	}

	#clear() {
		this.#missed = 0;
		this.#pill.hidden = true;
	}
}
