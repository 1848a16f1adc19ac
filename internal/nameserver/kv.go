package nameserver

import (
	"fmt"
	"maps"

	"github.com/metaqio/metaq/internal/protocol"
)

// orderNamespace is where the order of ordered topics is: key = topic, value = "broker:queues;broker:queues".
const orderNamespace = "ORDER_TOPIC_CONFIG"

// kvConfig is the KV configuration by namespace and key. It is never changed: a change makes a new one.
type kvConfig map[string]map[string]string

func (c kvConfig) get(namespace, key string) (value string, ok bool) {
	value, ok = c[namespace][key]
	return value, ok
}

// with gives c with a key set.
func (c kvConfig) with(namespace, key, value string) kvConfig {
	changed := maps.Clone(c[namespace])
	if changed == nil {
		changed = map[string]string{}
	}
	changed[key] = value
	return c.replace(namespace, changed)
}

// without gives c with a key removed.
func (c kvConfig) without(namespace, key string) kvConfig {
	changed := maps.Clone(c[namespace])
	delete(changed, key)
	return c.replace(namespace, changed)
}

func (c kvConfig) replace(namespace string, values map[string]string) kvConfig {
	all := maps.Clone(c)
	if all == nil {
		all = kvConfig{}
	}
	if len(values) == 0 {
		delete(all, namespace)
	} else {
		all[namespace] = values
	}
	return all
}

// size is the number of bytes that all keys and values have.
func (c kvConfig) size() (n int) {
	for namespace, values := range c {
		n += len(namespace)
		for k, v := range values {
			n += len(k) + len(v)
		}
	}
	return n
}

// setKV makes a change durable and then visible.
func (s *Server) setKV(change func(kvConfig) (kvConfig, error)) error {
	s.fileMu.Lock()
	defer s.fileMu.Unlock()
	s.mu.RLock()
	before, settings := s.kv, s.changed
	s.mu.RUnlock()
	after, err := change(before)
	if err != nil || after == nil {
		return err
	}
	if err := s.save(after, settings); err != nil {
		return err
	}
	s.mu.Lock()
	s.kv = after
	s.table.generation++ // routes carry order configurations
	s.mu.Unlock()
	return nil
}

// putKV answers 100.
func (s *Server) putKV(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.PutKVConfigRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	if _, ok := cmd.Ext.Get("value"); !ok {
		return invalid(cmd, &protocol.FieldError{Field: "value", Why: "is missing"})
	}
	if err := s.checkNames("namespace", h.Namespace, "key", h.Key); err != nil {
		return invalid(cmd, err)
	}
	err := s.setKV(func(kv kvConfig) (kvConfig, error) {
		after := kv.with(h.Namespace, h.Key, h.Value)
		if n := after.size(); n > s.limits.MaxKVBytes {
			return nil, fmt.Errorf("KV configuration of %d bytes exceeds MaxKVBytes (%d)", n, s.limits.MaxKVBytes)
		}
		return after, nil
	})
	if err != nil {
		return cmd.Reply(protocol.RespSystemError, err.Error())
	}
	s.log.Info("KV configuration changed", "namespace", h.Namespace, "key", h.Key, "value", h.Value, "by", c.Remote())
	return cmd.Reply(protocol.RespSuccess, "")
}

// getKV answers 101.
func (s *Server) getKV(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.GetKVConfigRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	s.mu.RLock()
	value, ok := s.kv.get(h.Namespace, h.Key)
	s.mu.RUnlock()
	if !ok {
		return cmd.Reply(protocol.RespQueryNotFound, "No config item, Namespace: "+h.Namespace+" Key: "+h.Key)
	}
	r := cmd.Reply(protocol.RespSuccess, "")
	r.Ext.Set("value", value)
	return r
}

// deleteKV answers 102. What is not there is deleted.
func (s *Server) deleteKV(c Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.DeleteKVConfigRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	err := s.setKV(func(kv kvConfig) (kvConfig, error) {
		if _, ok := kv.get(h.Namespace, h.Key); !ok {
			return nil, nil
		}
		s.log.Info("KV configuration deleted", "namespace", h.Namespace, "key", h.Key, "by", c.Remote())
		return kv.without(h.Namespace, h.Key), nil
	})
	if err != nil {
		return cmd.Reply(protocol.RespSystemError, err.Error())
	}
	return cmd.Reply(protocol.RespSuccess, "")
}

// listKV answers 219.
func (s *Server) listKV(_ Conn, cmd *protocol.Command) *protocol.Command {
	var h protocol.GetKVListRequest
	if err := h.Decode(&cmd.Ext); err != nil {
		return invalid(cmd, err)
	}
	body := s.kvTable(h.Namespace)
	if body == nil {
		return cmd.Reply(protocol.RespQueryNotFound, "No config item, Namespace: "+h.Namespace)
	}
	return s.withBody(cmd, body)
}

// kvTable is a namespace as a body; nil when it is empty.
func (s *Server) kvTable(namespace string) []byte {
	s.mu.RLock()
	values := s.kv[namespace]
	s.mu.RUnlock()
	if len(values) == 0 {
		return nil
	}
	return protocol.AppendJSON(nil, &protocol.KVTable{Table: values})
}
