// Multiplies two float32 matrices.
//
//	go run main.go [URL]    (default: http://127.0.0.1:8080)
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
)

// multiply returns the product of a, which is m×k, and b, which is k×n. Matrices are slices, row after row. The error
// has the service's sentence if the service rejects the request.
func multiply(url string, a, b []float32, m, k, n int) ([]float32, error) {
	body := new(bytes.Buffer)
	binary.Write(body, binary.LittleEndian, a)
	binary.Write(body, binary.LittleEndian, b)
	target := fmt.Sprintf("%s/v1/matmul?m=%d&k=%d&n=%d&dtype=float32", url, m, k, n)
	reply, err := http.Post(target, "application/octet-stream", body)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		json.NewDecoder(reply.Body).Decode(&problem)
		return nil, fmt.Errorf("%s: %s", reply.Status, problem.Detail)
	}
	c := make([]float32, m*n)
	return c, binary.Read(reply.Body, binary.LittleEndian, c)
}

func main() {
	url := "http://127.0.0.1:8080"
	if len(os.Args) > 1 {
		url = os.Args[1]
	}
	c, err := multiply(url, []float32{1, 2, 3, 4, 5, 6}, []float32{7, 8, 9, 10, 11, 12}, 2, 3, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v %v\n%v %v\n", c[0], c[1], c[2], c[3])
}
