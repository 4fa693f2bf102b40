// Drives clients of the socket.io-client package for a test: a command on each
// line of stdin, what the clients hear on each line of stdout.
import { createInterface } from 'node:readline'
import { io } from 'socket.io-client'

const url = process.argv[2]
const sockets = new Map()
const say = (id, event, ...args) => process.stdout.write(JSON.stringify({ id, event, args }) + '\n')

const commands = {
  connect({ id, namespace, auth, query, transports, headers }) {
    const s = io(url + namespace, { auth, query, transports, extraHeaders: headers, forceNew: true, reconnection: false })
    sockets.set(id, s)
    s.io.engine.once('upgrade', (t) => say(id, 'upgrade', t.name)) // which may come before connect
    s.on('connect', () => say(id, 'connect', s.io.engine.transport.name))
    s.on('connect_error', (err) => say(id, 'connect_error', err.message))
    s.on('disconnect', (why) => say(id, 'disconnect', why))
    s.onAny((event, ...args) => say(id, event, ...args))
  },
  emit({ id, event, data, ack }) {
    if (ack) sockets.get(id).emit(event, data, (answer) => say(id, 'ack', answer))
    else sockets.get(id).emit(event, data)
  },
  close({ id }) {
    sockets.get(id).disconnect()
    sockets.delete(id)
  },
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const command = JSON.parse(line)
  commands[command.op](command)
}).on('close', () => process.exit(0))
