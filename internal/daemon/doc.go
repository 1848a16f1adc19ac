// Package daemon is the shell of the process: configuration, logging, the data folder, listeners, signals and the life of services.
// It knows nothing of brokers; what its settings mean is decided by those who are given them.
//
// # Settings
//
// [Table] is the one definition of every setting: name, kind, default, unit, help, RocketMQ names, and whether a running server can take
// a new value. [Load] lays the sources over one another (defaults < files < METAQ_* environment < flags < --set), refuses names it does
// not know with the nearest one it knows, and fills the plain struct [Settings]. It reports all problems at once ([ProblemsError]).
// A file is YAML, or a RocketMQ broker.conf or namesrv.conf: foreign.go and its neighbours say for each well-known key whether it
// is mapped, not needed (and why), or refused because ignoring it would change a guarantee. [Settings.RocketMQ] is the way back.
// [Reload] reads everything again on SIGHUP and hands the values that may change to its subscribers.
//
// # Process
//
// [NewLogger] (text on a terminal, JSON elsewhere) and [Throttle] (hot warnings), [OpenData] (lock and node file of the data folder),
// [Listen] (all ports, with clear errors), [WriteReady] (the ready file), [Signals] (graceful stop with a limit, a second signal ends
// at once), [LimitMemory] (the container's limit) and [Group] (services that start in order and stop in reverse).
//
// Goroutines: one in Signals until its stop function is called; one for each service while Group.Run runs.
// Files: writes LOCK and node in the data folder, and the ready file; reads the configuration files.
package daemon
