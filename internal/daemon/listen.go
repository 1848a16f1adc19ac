package daemon

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// A Listening is one open listener.
type Listening struct {
	Name string // ListenerBroker, …
	net.Listener
}

// A ListenerSet holds the open listeners of a process.
type ListenerSet []Listening

// Listen opens every listener that is not off. When one cannot be opened, none is, and the error says which, why and what to do.
func Listen(s Settings) (ListenerSet, error) {
	var set ListenerSet
	for _, name := range Listeners {
		port := s.Port(name)
		if port == Off {
			continue
		}
		addr := net.JoinHostPort(s.Bind, strconv.Itoa(port))
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, errors.Join(listenError(name, addr, err), set.Close())
		}
		set = append(set, Listening{Name: name, Listener: ln})
	}
	return set, nil
}

func listenError(name, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s address %s is in use: stop the program that has it, or choose another port with --%s-port (0 takes any free one)",
			name, addr, name)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s address %s is not an address of this machine: correct --bind", name, addr)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s address %s may not be opened by this user: choose a port above 1023 with --%s-port", name, addr, name)
	}
	return fmt.Errorf("listen on %s address %s: %w", name, addr, err)
}

// Addresses returns the address of each listener by name.
func (l ListenerSet) Addresses() map[string]string {
	m := make(map[string]string, len(l))
	for _, ln := range l {
		m[ln.Name] = ln.Addr().String()
	}
	return m
}

// Close closes all listeners; those that are closed already are no error.
func (l ListenerSet) Close() error {
	var errs []error
	for _, ln := range l {
		if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("close %s listener: %w", ln.Name, err))
		}
	}
	return errors.Join(errs...)
}
