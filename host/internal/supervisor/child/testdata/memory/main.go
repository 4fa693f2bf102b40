// Command memory uses as many MiB as it is told, in pieces of 1 MiB.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	kept := make([][]byte, n)
	for i := range kept {
		kept[i] = make([]byte, 1<<20)
		for j := 0; j < 1<<20; j += 4096 {
			kept[i][j] = 1
		}
	}
	fmt.Println("used", len(kept))
}
