package limit_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"intents.internal/gateway/limit"
	"intents.internal/pkg/topology/topologytest"
	"intents.internal/pkg/tracing"
)

// aMillion is never used up here.
var aMillion = redis_rate.Limit{Rate: 1 << 20, Burst: 1 << 20, Period: time.Minute}

func BenchmarkOneAtATime(b *testing.B) {
	takes(b, newLimiter(b, startRedis(b, false).URL, generous, limit.Closed), 1)
}

func BenchmarkManyAtOnce(b *testing.B) {
	l := newLimiter(b, startRedis(b, false).URL, generous, limit.Closed)
	client, _ := l.redis.(*redis.Client)
	takes(b, l, 64, client)
}

func BenchmarkManyAtOnceOnCluster(b *testing.B) {
	c := topologytest.StartCluster(b, 3, 0, topologytest.Security{})
	takes(b, onCluster(b, c, 1, generous, limit.Closed)[0], 64, c.Masters[0].Client, c.Masters[1].Client, c.Masters[2].Client)
}

// takes has so many clients at once take from buckets of their own, and reports the time that the servers spent on it.
func takes(b *testing.B, l limiter, clients int, servers ...*redis.Client) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(clients)
	var client atomic.Int64
	take := func() func() {
		name := "client " + strconv.FormatInt(client.Add(1), 10)
		return func() {
			if d, err := l.Take(tracing.Noop, name, aMillion, time.Now()); err != nil || !d.Allowed {
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
	before := spent(b, servers)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		one := take()
		for pb.Next() {
			one()
		}
	})
	b.ReportMetric(float64((spent(b, servers)-before).Nanoseconds())/float64(b.N), "redis-ns/op")
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
