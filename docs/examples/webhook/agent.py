"""An agent of a Pontoon host as a webhook: it checks who calls, and answers."""
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            turn = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            return self.send_error(401)
        text = "\n".join(p["text"] for p in turn["message"]["parts"] if p["type"] == "text")
        answer = json.dumps({"text": "You said: " + text}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


host, port = os.environ.get("LISTEN", "127.0.0.1:9000").rsplit(":", 1)
ThreadingHTTPServer((host, int(port)), Agent).serve_forever()
