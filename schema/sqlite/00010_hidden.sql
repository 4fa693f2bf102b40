-- +goose Up

-- Up to which message a conversation of a front end is not shown to its user any
-- more, who began a new one. The messages stay. The trigger forgets that with the
-- conversation.
CREATE TABLE hidden (
    channel      INTEGER NOT NULL,
    conversation TEXT    NOT NULL, -- conversation.key
    upto         INTEGER NOT NULL, -- message.id
    PRIMARY KEY (channel, conversation)
) STRICT, WITHOUT ROWID;
-- +goose StatementBegin
CREATE TRIGGER hidden_of_conversation AFTER DELETE ON conversation
BEGIN DELETE FROM hidden WHERE channel = OLD.channel AND conversation = OLD.key; END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER hidden_of_conversation;
DROP TABLE hidden;
