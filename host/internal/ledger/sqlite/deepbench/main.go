package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "deepbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c := DeepConfig{Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }}
	f := flag.NewFlagSet("deepbench", flag.ExitOnError)
	f.StringVar(&c.Dir, "dir", "", "where data directories are made and removed (default: the system's for temporary files)")
	f.IntVar(&c.Stored, "stored", 10_000_000, "messages stored beforehand; 10 million take about 2.3 GB")
	f.IntVar(&c.Conversations, "conversations", 50, "conversations that they belong to")
	f.StringVar(&c.IDs, "ids", IDsNone, "platform ids of the questions: none, ordered or random")
	f.IntVar(&c.Pairs, "pairs", 10_000, "questions with their answers of one measurement")
	f.IntVar(&c.Rounds, "rounds", 15, "rounds")
	asJSON := f.Bool("json", false, "print one JSON value and nothing else")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *asJSON {
		c.Progress = nil
	}
	r, err := Deep(ctx, c)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(&r)
	}
	return r.Print(os.Stdout)
}
