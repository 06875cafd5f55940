package limit_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/testkit/topologytest"
	"intents.internal/pkg/tokenbucket"
)

// A key's aMillion and an account's aBillion are never used up here.
var (
	aMillion = tokenbucket.Per(1<<20, time.Minute)
	aBillion = tokenbucket.Per(1<<30, time.Minute)
)

func BenchmarkLimiter_Serial(b *testing.B) {
	takes(b, newLimiter(b, startRedis(b, false).URL, generous, limit.Closed), 1, 1)
}

func BenchmarkLimiter_Parallel(b *testing.B) {
	for name, keysEach := range map[string]int{"no account": 0, "a key an account": 1, "100 keys an account": 100} {
		b.Run(name, func(b *testing.B) {
			l := newLimiter(b, startRedis(b, false).URL, generous, limit.Closed)
			client, _ := l.redis.(*redis.Client)
			takes(b, l, keysEach, 64, client)
		})
	}
}

func BenchmarkLimiter_ParallelOnCluster(b *testing.B) {
	c := topologytest.StartCluster(b, 3, 0, topologytest.Security{})
	takes(b, onCluster(b, c, 1, generous, limit.Closed)[0], 1, 64, c.Masters[0].Client, c.Masters[1].Client, c.Masters[2].Client)
}

// benchKeys is how many keys the clients of a benchmark have.
const benchKeys = 20_000

// takes has so many clients at once take from buckets of keys, so many of which are an account's, 0 for accounts without a limit. It
// reports the processor time that the servers spent on it, and this process.
func takes(b *testing.B, l limiter, keysEach, clients int, servers ...*redis.Client) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(clients)
	names, accounts := make([]string, benchKeys), make([]tokenbucket.Bucket, benchKeys)
	for i := range names {
		names[i] = "key:" + uuid.NewString()
		accounts[i] = tokenbucket.Bucket{Name: "account:live:" + uuid.NewString(), Rule: aBillion}
		switch {
		case keysEach == 0:
			accounts[i].Rule = tokenbucket.Rule{}
		case i%keysEach > 0:
			accounts[i] = accounts[i-1]
		}
	}
	var client atomic.Int64
	take := func() func() {
		next, refusals := int(client.Add(1))*benchKeys/64, limit.Refusals{}
		return func() {
			next++
			if d, err := l.Limiter.Take(tokenbucket.Bucket{Name: names[next%benchKeys], Rule: aMillion}, accounts[next%benchKeys], 1, &refusals, time.Now()); err != nil || !d.Allowed {
				b.Errorf("%+v, %v", d, err)
			}
		}
	}
	take()()
	if clients == 1 {
		one := take()
		for b.Loop() {
			one()
		}
		return
	}
	before, own := spent(b, servers), ownCPU(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		one := take()
		for pb.Next() {
			one()
		}
	})
	b.ReportMetric(float64((spent(b, servers)-before).Nanoseconds())/float64(b.N), "redis-ns/op")
	b.ReportMetric(float64((ownCPU(b)-own).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// ownCPU is the processor time of this process.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// spent is the processor time of servers.
func spent(b *testing.B, servers []*redis.Client) (all time.Duration) {
	b.Helper()
	for _, server := range servers {
		text, err := server.Info(b.Context(), "cpu").Result()
		if err != nil {
			b.Fatal(err)
		}
		for line := range strings.SplitSeq(text, "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			if name == "used_cpu_user" || name == "used_cpu_sys" {
				seconds, _ := strconv.ParseFloat(value, 64)
				all += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return all
}
