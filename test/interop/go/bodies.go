package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	bodyLimit = 4 << 20
	scripts   = "žluťoučký kůň · 消息队列 · رسالة · 🚀𝕏 · \\ \" ' { } : , \t \n \u007f \u00a0"
)

// bodies has messages of all sizes and scripts, compressed or not, and those that are refused.
func bodies(s *suite) {
	s.add("body-big", bodyBig)
	s.add("body-small", bodySmall)
	s.add("unicode", unicodeTexts)
	s.add("compression-zlib", compression)
	s.add("refused-body", refusedBody)
	s.add("refused-topic", refusedTopic)
}

func plain() producer.Option { return producer.WithCompressMsgBodyOverHowmuch(1 << 30) }

func bodyBig(r *rig) {
	p := r.producer(plain())
	topic := r.topic(2)
	source := rand.NewChaCha8([32]byte{7})
	var sent [][]byte
	for _, size := range []int{bodyLimit - 1, bodyLimit, bodyLimit - 4096, 1 << 20} {
		body := make([]byte, size)
		_, _ = source.Read(body)
		r.send(p, primitive.NewMessage(topic, body).WithKeys([]string{strconv.Itoa(len(sent))}))
		sent = append(sent, body)
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	for _, a := range in.awaitDistinct(r, len(sent)) {
		i, err := strconv.Atoi(a.GetKeys())
		r.must(err, "keys")
		r.check(bytes.Equal(sent[i], a.Body), "body %d of %d bytes came as other %d bytes", i, len(sent[i]), len(a.Body))
	}
}

func bodySmall(r *rig) {
	p := r.producer()
	topic := r.topic(1)
	sent := [][]byte{{0}, {32}, {255}, {0, 0}, {10}, {123}}
	for _, body := range sent {
		r.send(p, primitive.NewMessage(topic, body))
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	for _, a := range in.awaitDistinct(r, len(sent)) {
		r.check(bytes.Equal(sent[a.QueueOffset], a.Body), "body at %d: want %v, got %v", a.QueueOffset, sent[a.QueueOffset], a.Body)
	}
}

// unicodeTexts has a plain tag: the hash that this client makes of others is not that of the servers.
func unicodeTexts(r *rig) {
	p := r.producer()
	topic := r.topic(1)
	m := primitive.NewMessage(topic, []byte(scripts)).WithTag("Tag-1").WithKeys([]string{"ключ🚀", "second"})
	m.WithProperty("имя", scripts)
	r.send(p, m)
	in := newInbox()
	r.push(r.unique("cg"), topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "Tag-1 || other"}, into(in))
	got := in.awaitDistinct(r, 1)[0]
	r.equal(scripts, got.text, "body")
	r.equal("Tag-1", got.GetTags(), "tags")
	r.equal("ключ🚀 second", got.GetKeys(), "keys")
	r.equal(scripts, got.GetProperty("имя"), "property")
}

func compression(r *rig) {
	p := r.producer()
	topic := r.topic(1)
	texts := []string{"short", strings.Repeat("ab", 2048), strings.Repeat("compress me, 压缩 ", 20_000)}
	for _, text := range texts {
		r.send(p, primitive.NewMessage(topic, []byte(text)))
	}
	in := newInbox()
	r.push(r.unique("cg"), topic, all, into(in))
	in.awaitTexts(r, texts)
	for _, a := range in.all() {
		r.check(a.StoreSize < 4096, "%d bytes stored of %d", a.StoreSize, len(a.Body))
		r.equal(len(a.Body) >= 4096, a.SysFlag&1 == 1, "flag of compression")
	}
}

func refusedBody(r *rig) {
	p := r.producer(plain())
	topic := r.topic(1)
	_, err := p.SendSync(context.Background(), primitive.NewMessage(topic, make([]byte, bodyLimit+1)))
	r.check(err != nil && strings.Contains(err.Error(), "CODE: 13"), "want code 13 for a big body, got %v", err)
	m := primitive.NewMessage(topic, []byte{1})
	m.WithProperty("long", strings.Repeat("v", 33_000))
	_, err = p.SendSync(context.Background(), m)
	r.check(err != nil && strings.Contains(err.Error(), "CODE: 13"), "want code 13 for big properties, got %v", err)
	r.send(p, primitive.NewMessage(topic, []byte{1}))
}

// refusedTopic relies on the server: this client does not check names.
func refusedTopic(r *rig) {
	p := r.producer()
	for topic, code := range map[string]string{"bad topic!": "CODE: 29", "SCHEDULE_TOPIC_XXXX": "CODE: 16"} {
		_, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte{1}))
		r.check(err != nil && strings.Contains(err.Error(), code), "want %s for topic %q, got %v", code, topic, err)
	}
	r.send(p, primitive.NewMessage(r.topic(1), []byte{1}))
}
