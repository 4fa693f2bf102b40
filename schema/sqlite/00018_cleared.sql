-- +goose Up

-- What was called hidden: a user's conversation of a front end that began anew.
DROP TRIGGER hidden_of_conversation;
ALTER TABLE hidden RENAME TO cleared;
ALTER TABLE cleared RENAME COLUMN upto TO cleared_upto; -- message.id: this message and those before it are not shown
-- +goose StatementBegin
CREATE TRIGGER cleared_of_conversation AFTER DELETE ON conversation
BEGIN DELETE FROM cleared WHERE channel = OLD.channel AND conversation = OLD.key; END;
-- +goose StatementEnd

-- +goose Down
DROP TRIGGER cleared_of_conversation;
ALTER TABLE cleared RENAME COLUMN cleared_upto TO upto;
ALTER TABLE cleared RENAME TO hidden;
-- +goose StatementBegin
CREATE TRIGGER hidden_of_conversation AFTER DELETE ON conversation
BEGIN DELETE FROM hidden WHERE channel = OLD.channel AND conversation = OLD.key; END;
-- +goose StatementEnd
