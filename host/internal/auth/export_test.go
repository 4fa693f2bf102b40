package auth

// Cheapen has passwords hashed fast: what a hash costs is TestHashMatches' business.
func (a *Account) Cheapen() { a.hasher.cost = argon{passes: 1, memory: 64, threads: 1} }
