package console

import (
	"net/http"

	"github.com/pontoon-bridge/pontoon/host/internal/api"
)

// question asks before what cuts somebody off. The form goes to where the page is.
type question struct {
	Action string
	Does   string // what it does
	Now    string // who is there now
	Verb   string
	Back   string // where who does not want it goes
}

// attachedNow says who would be cut off.
func attachedNow(row api.Channel, after string) string {
	if row.Adapter == nil {
		return "No adapter is attached now."
	}
	return "Attached now: " + clip(row.Adapter.Platform, 100) + " by " + row.Adapter.Transport + " from " + row.Adapter.Remote + ". " + after
}

// attachedBy says who would be cut off with a token.
func attachedBy(row api.Channel, token string) string {
	if row.Adapter != nil && row.Adapter.TokenID == token {
		return attachedNow(row, "It came with this token, and is cut off at once. To change the token without that, rotate it.")
	}
	return "Nobody is attached with it now."
}

func (c *console) askDisable(w http.ResponseWriter, r *http.Request) error {
	row, err := get[api.Channel](c, r, "channels", r.PathValue("id"))
	if err != nil {
		return err
	}
	at := where("channels", row.Name)
	c.show(w, r, http.StatusOK, view{Title: "Disable " + row.Name + "?", Nav: navChannels, Above: [2]string{row.Name, at}}, askPage(question{
		Action: where("channels", row.Name, "disable"), Verb: "Disable " + row.Name, Back: at,
		Does: "No adapter may attach until it is enabled again, and whoever is attached is cut off.", Now: attachedNow(row, "It is cut off at once."),
	}))
	return nil
}

func (c *console) askRevokeToken(w http.ResponseWriter, r *http.Request) error {
	row, err := get[api.Channel](c, r, "channels", r.PathValue("id"))
	if err != nil {
		return err
	}
	list, err := get[tokenList](c, r, "channels", row.ID, "tokens"+most)
	if err != nil {
		return err
	}
	return c.askRevoke(w, r, "token", list.Tokens, r.PathValue("token"), view{Nav: navChannels, Above: [2]string{row.Name, where("channels", row.Name)}}, question{
		Action: where("channels", row.Name, "tokens", r.PathValue("token"), "revoke"),
		Now:    attachedBy(row, r.PathValue("token")),
	})
}

func (c *console) askRevokeKey(w http.ResponseWriter, r *http.Request) error {
	v, err := c.loadAgent(r)
	if err != nil {
		return err
	}
	now := "The agent is not connected now."
	if !v.Away {
		now = "The agent is connected now. If it came with this key it is cut off at once. To change the key without that, rotate it."
	}
	return c.askRevoke(w, r, "key", v.Keys, r.PathValue("key"), view{Nav: navAgents, Above: [2]string{v.Name, where("agents", v.Name)}}, question{
		Action: where("agents", v.Name, "keys", r.PathValue("key"), "revoke"), Now: now,
	})
}

// askRevoke asks before the credential of this id ends.
func (c *console) askRevoke(w http.ResponseWriter, r *http.Request, what string, list []api.Token, id string, v view, q question) error {
	for _, t := range list {
		if t.ID == id {
			v.Title, q.Back, q.Verb = "Revoke "+what+" "+tokenName(t)+"?", v.Above[1], "Revoke the "+what
			q.Does = "The " + what + " stops working now. It cannot be brought back."
			c.show(w, r, http.StatusOK, v, askPage(q))
			return nil
		}
	}
	return &Problem{Status: http.StatusNotFound, Title: "No such " + what, Detail: "It may have been deleted meanwhile."}
}
