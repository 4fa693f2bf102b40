"""A Pontoon plugin in Python: the host starts it and speaks with it over gRPC (docs/plugins.md says how).

Its platform is a TCP port: who connects and types a line says something, and reads the answers.
Python 3.11 or newer; needs what requirements.txt names. In plugins.yaml:

    - name: lines
      command: [./venv/bin/python, plugin.py]
      config: { listen: "127.0.0.1:7000" }
"""
import base64, datetime, itertools, json, os, queue, signal, socketserver, sys, threading
from concurrent import futures

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

COOKIE = "4f9d1a62c7b84e0c8f53b7d6a01e2c95"  # says that a host started us; it is no secret
VERSIONS = {1}                               # of pontoon.bridge.v1 that this program speaks


# The messages of bridge.proto are so small that no generated code is needed: a protobuf message is a list of
# (field number and type, value), and all of ours are bytes or a small number.

def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def encode(fields):
    """The message with these fields: {number: bytes or int}. Empty ones are left out, as proto3 does."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, bytes) and value:
            out += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, int) and value:
            out += varint(number << 3) + varint(value)
    return out

def decode(data):
    """The fields of a message: {number: bytes or int}. Unknown ones are kept; nobody asks for them."""
    fields, at = {}, 0
    def number():
        nonlocal at
        n = shift = 0
        while True:
            b, at = data[at], at + 1
            n, shift = n | (b & 127) << shift, shift + 7
            if b < 128:
                return n
    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 2:
            size = number()
            fields[key >> 3], at = data[at:at + size], at + size
        else:
            raise ValueError(f"found wire type {key & 7}, expected 0 or 2")
    return fields


class Platform:
    """The TCP port. A connection is a conversation."""

    def __init__(self, say):
        self.say, self.conversations, self.numbers = say, {}, itertools.count(1)

    def listen(self, address):
        host, _, port = address.rpartition(":")
        platform = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self):
                name = f"line-{next(platform.numbers)}"
                platform.conversations[name] = self.wfile
                try:
                    for line in self.rfile:
                        platform.say(name, line.decode("utf-8", "replace").rstrip("\r\n"))
                finally:
                    del platform.conversations[name]

        socketserver.ThreadingTCPServer.allow_reuse_address = True
        server = socketserver.ThreadingTCPServer((host, int(port)), Connection)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def show(self, conversation, text):
        if out := self.conversations.get(conversation):
            out.write(text.encode() + b"\n")


class Plugin:
    """The service pontoon.bridge.v1.Bridge, and what ends the program."""

    def __init__(self):
        self.frames = queue.Queue(1000)  # on their way to the host; None = the end
        self.platform = Platform(self.say)
        self.stopped = threading.Event()

    def say(self, conversation, text):
        self.send({"type": "message", "conversation_id": conversation, "user_id": conversation, "text": text})

    def send(self, frame):
        self.frames.put(encode({1: json.dumps(frame, ensure_ascii=False).encode()}))

    def configure(self, request, context):
        try:
            config = json.loads(decode(request).get(2) or b"{}")
            self.platform.listen(config["listen"])
        except (KeyError, ValueError, OSError) as e:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f'listen: {e!r}, expected "127.0.0.1:PORT"')
        return b""

    def attach(self, requests, context):
        """One stream at a time. What is yielded goes to the host; what the host sends is read beside it."""
        threading.Thread(target=self.read, args=(requests,), daemon=True).start()
        yield encode({1: json.dumps({"type": "register", "platform": "lines", "capabilities": ["text"]}).encode()})
        try:
            while context.is_active():
                try:
                    frame = self.frames.get(timeout=0.2)
                except queue.Empty:
                    continue
                if frame is None:
                    yield encode({2: 1000, 3: b"plugin stopped"})  # a close frame is the last one
                    break
                yield frame
        finally:
            self.stopped.set()

    def read(self, requests):
        try:
            for request in requests:
                fields = decode(request)
                if 2 in fields:  # the host closes: docs/protocol.md has the codes
                    print("closed by the host:", fields[2], fields.get(3, b"").decode(), file=sys.stderr)
                    break
                frame = json.loads(fields[1])
                if frame["type"] == "send":
                    self.platform.show(frame["conversation_id"], frame["text"])
                elif frame["type"] in ("error", "register_ack") and not frame.get("ok"):
                    print("the host says:", frame, file=sys.stderr)
        except grpc.RpcError:
            pass  # the host is gone
        self.stop()

    def stop(self, *_):
        self.frames.put(None)
        threading.Timer(5, self.stopped.set).start()  # if no stream takes it


def certificate():
    """A self-signed certificate for this life of the program: what is served with it, and what the host pins."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1)).not_valid_after(now + datetime.timedelta(days=3650))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256()))
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return secret, made.public_bytes(serialization.Encoding.PEM), made.public_bytes(serialization.Encoding.DER)


def service(name, **methods):
    return grpc.method_handlers_generic_handler(name, methods)  # without serializers: they get and give bytes


def main():
    if os.environ.get("PONTOON_PLUGIN") != COOKIE:
        sys.exit("plugin.py: this is a plugin: name it in a host's plugins.yaml")
    common = VERSIONS & {int(v) for v in os.environ["PLUGIN_PROTOCOL_VERSIONS"].split(",")}
    version = max(common, default=max(VERSIONS))  # none in common: the host says so to its operator
    parent, plugin = os.getppid(), Plugin()
    signal.signal(signal.SIGTERM, plugin.stop)

    server = grpc.server(futures.ThreadPoolExecutor(8))
    unary = grpc.unary_unary_rpc_method_handler
    server.add_generic_rpc_handlers((
        service("pontoon.bridge.v1.Bridge", Configure=unary(plugin.configure),
                Attach=grpc.stream_stream_rpc_method_handler(plugin.attach)),
        service("grpc.health.v1.Health", Check=unary(lambda request, context: encode({1: 1}))),  # SERVING
        service("plugin.GRPCController", Shutdown=unary(lambda request, context: plugin.stop() or b"")),
    ))
    socket = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "plugin.sock")
    key, pem, der = certificate()
    server.add_secure_port("unix:" + socket, grpc.ssl_server_credentials(
        [(key, pem)], root_certificates=os.environ["PLUGIN_CLIENT_CERT"].encode(), require_client_auth=True))
    server.start()
    print("1", version, "unix", socket, "grpc", base64.b64encode(der).decode().rstrip("="), sep="|", flush=True)

    while not plugin.stopped.wait(0.25) and os.getppid() == parent:
        pass
    server.stop(grace=0.5).wait()


if __name__ == "__main__":
    main()
