//go:build linux

package main

import "testing"

func (c *crew) doctor(t *testing.T)          {}
func (c *crew) rest(t *testing.T)            {}
func (c *crew) refusesRequests(t *testing.T) {}
func (c *crew) wantsKey(t *testing.T)        {}
func (c *crew) staysReady(t *testing.T)      {}
func (c *crew) outlivesHost(t *testing.T)    {}

func (c *crew) removedChannel(t *testing.T, name string) {}
