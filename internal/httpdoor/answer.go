package httpdoor

import (
	"encoding/json"
	"net/http"
)

// problem is the body of every error.
type problem struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// state is the body of /healthz and /readyz.
type state struct {
	Status string `json:"status"` // ok or unavailable
	Reason string `json:"reason,omitempty"`
}

// writeJSON answers with a value. Nothing here may be kept by anybody in between.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // a value of ours that has no JSON
		status, b = http.StatusInternalServerError, []byte(`{"error":"internal","message":"the answer has no JSON"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // an error is the client's, which is gone
}

func fail(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, problem{Error: code, Message: message})
}

// writeState answers 200, or 503 with the reason.
func writeState(w http.ResponseWriter, why error) {
	if why != nil {
		writeJSON(w, http.StatusServiceUnavailable, state{Status: "unavailable", Reason: why.Error()})
		return
	}
	writeJSON(w, http.StatusOK, state{Status: "ok"})
}
