package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pontoon-bridge/pontoon/host/internal/tally"
)

// desc is a metric that is read when somebody asks.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

var all []desc

func describe(kind prometheus.ValueType, name, help string, labels ...string) desc {
	d := desc{prometheus.NewDesc("pontoon_"+name, help, labels, nil), kind}
	all = append(all, d)
	return d
}

func gauge(name, help string, labels ...string) desc {
	return describe(prometheus.GaugeValue, name, help, labels...)
}

func counter(name, help string, labels ...string) desc {
	return describe(prometheus.CounterValue, name, help, labels...)
}

// What of the labels' values is not a closed list is a channel's or an agent's
// name: operators make those.
var (
	messages       = counter("messages_total", "Messages that were stored.", "channel", "direction")
	outcomes       = counter("message_outcomes_total", "What became of messages. One that was sent may fail later.", "channel", "direction", "state", "reason")
	refused        = counter("messages_refused_total", "Messages of adapters that were not stored, since the disk took nothing.", "channel")
	repeated       = counter("messages_repeated_total", "Messages of adapters that were acknowledged and not stored, since the channel has had one of their message_id.", "channel")
	limited        = counter("rate_limited_frames_total", "Frames of adapters over their channel's rate, which were refused.", "channel")
	ignored        = counter("ignored_acknowledgements_total", "Acknowledgements of adapters for messages that were not in flight.", "channel")
	latency        = gauge("delivery_latency_seconds", "How long messages took to the far end, from the commit: acknowledged, or written to an adapter that does not acknowledge.", "channel")
	queued         = gauge("queue_messages", "Messages that wait for an adapter.", "channel")
	oldest         = gauge("queue_oldest_age_seconds", "How long the oldest message that waits for an adapter has waited; 0 = none does.", "channel")
	flights        = gauge("unacknowledged_messages", "Messages that were sent and are not acknowledged yet.", "channel")
	waiting        = gauge("waiting_conversations", "Conversations that wait for an agent that is away.", "channel")
	dead           = gauge("dead_letters", "Messages that failed or expired, and are still there, among the newest 50,000.", "channel")
	attached       = gauge("adapter_attached", "Whether an adapter is attached.", "channel")
	platform       = gauge("platform_state", "1 for the state that the channel's platform is in, as its adapter says.", "channel", "state")
	enabled        = gauge("channel_enabled", "Whether the channel is enabled.", "channel")
	turns          = counter("agent_turns_total", "Turns that were handed over to an agent, by how they ended.", "agent", "outcome")
	turnTime       = gauge("agent_turn_seconds", "How long agents took for a turn.", "agent")
	firstToken     = gauge("agent_first_token_seconds", "How long agents took to the first text of a turn that they streamed.", "agent")
	turnsActive    = gauge("agent_turns_active", "Turns that agents work on now.", "agent")
	agentAway      = gauge("agent_away", "Whether the agent can't be asked.", "agent")
	pluginState    = gauge("plugin_state", "1 for the state that the plugin is in.", "plugin", "state")
	pluginRestarts = counter("plugin_restarts_total", "Starts of a plugin after its first.", "plugin")
	commitTime     = gauge("store_commit_seconds", "How long a commit of messages took, with its sync.")
	commitBatch    = gauge("store_commit_batch_units", "How many units (a message with its answers, or changes of state) a commit had.")
	storeRefused   = counter("store_refused_units_total", "Units that the disk did not take.")
	storeFailing   = gauge("store_failing", "Whether messages are refused, since the latest commit failed.")
	databaseSize   = gauge("database_size_bytes", "Size of the database.")
	walSize        = gauge("wal_size_bytes", "Size of the log beside the database.")
	attachmentSize = gauge("attachments_size_bytes", "Size of all attachments.")
	diskFree       = gauge("disk_free_bytes", "Room on the file system of the data directory.")
	diskReserved   = gauge("disk_reserved_bytes", "Of it, what is kept back: with less, messages are refused.")
	readersBusy    = gauge("readers_busy", "Readers of the history at work.")
	readersMost    = gauge("readers", "Readers of the history that there are.")
	eventStreams   = gauge("event_streams", "Readers of the event stream.")
	connections    = gauge("connections", "Connections, registered or not.", "kind")
	authFailures   = counter("auth_failures_total", "Credentials that were shown and opened nothing.", "credential")
	lastBackup     = gauge("last_backup_timestamp_seconds", "When the newest known backup was made; 0 = none is known.")
	scrapeErrors   = gauge("scrape_errors", "Groups of metrics that could not be read this time.")
)

// upper are a histogram's bounds as Prometheus has them.
func upper(b *tally.Bounds, c *tally.Counts, unit float64) (n uint64, sum float64, buckets map[float64]uint64) {
	buckets = make(map[float64]uint64, len(b))
	for i, bound := range b {
		n += c.N[i]
		buckets[float64(bound)/unit] = n
	}
	return n + c.N[tally.Buckets-1], float64(c.Sum) / unit, buckets
}
