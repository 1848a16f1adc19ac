package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/metaqio/metaq/internal/daemon"
)

// serverFlags are the settings that have a flag of their own; all others are given with --set.
var serverFlags = []string{
	"data", "bind", "allow-anonymous", "nameserver-port", "broker-port", "vip-port", "grpc-port", "http-port", "cluster", "shard",
	"durability", "sync-interval", "advertise", "nameservers", "ready-file", "log-level",
}

// settingsFlags are the flags of every command that reads a server's configuration.
type settingsFlags struct {
	files []string
	flags *pflag.FlagSet

	mu  sync.Mutex // guards the following once the server runs
	set []string
}

func addSettingsFlags(cmd *cobra.Command) *settingsFlags {
	f := &settingsFlags{flags: cmd.Flags()}
	f.flags.StringArrayVar(&f.files, "config", nil, "configuration in a `FILE`: YAML, or RocketMQ's broker.conf or namesrv.conf; may be given more than once")
	f.flags.StringArrayVar(&f.set, "set", nil, "any setting, as `NAME=VALUE`; may be given more than once")
	for _, name := range serverFlags {
		t, ok := daemon.Lookup(name)
		if !ok {
			panic("flag without a setting: " + name)
		}
		flag := f.flags.VarPF(&textFlag{value: t.Default, kind: t.Kind()}, name, "", flagHelp(t))
		if t.Kind() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
	return f
}

// A textFlag keeps what was given as it is: daemon.Load checks it, together with all other sources.
type textFlag struct{ value, kind string }

// String, Set and Type implement pflag.Value.
func (f *textFlag) String() string     { return f.value }
func (f *textFlag) Set(v string) error { f.value = v; return nil }
func (f *textFlag) Type() string       { return strings.ToUpper(f.kind) }

// flagHelp is the first sentence of a setting's help and its values; docs/operations.md has the rest.
func flagHelp(t daemon.Setting) string {
	help, _, _ := strings.Cut(t.Help, ". ")
	help = strings.TrimSuffix(help, ".")
	if t.Unit != "" {
		help += " (" + t.Unit + ")"
	}
	return strings.ReplaceAll(help, "`", "'")
}

// load reads the configuration from all sources.
func (f *settingsFlags) load() (daemon.Settings, daemon.Report, error) {
	given := map[string]string{}
	for _, name := range serverFlags {
		if flag := f.flags.Lookup(name); flag.Changed {
			given[name] = flag.Value.String()
		}
	}
	f.mu.Lock()
	set := f.set
	f.mu.Unlock()
	return daemon.Load(daemon.Sources{Files: f.files, Environ: os.Environ(), Flags: given, Assignments: set})
}

// override changes settings of the running server, by their RocketMQ names or ours, all or none, until it ends.
func (f *settingsFlags) override(changes map[string]string, reload *daemon.Reload) error {
	f.mu.Lock()
	before := f.set
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		f.set = append(slices.Clone(f.set), name+"="+changes[name])
	}
	f.mu.Unlock()
	if _, _, err := f.load(); err != nil {
		f.mu.Lock()
		f.set = before
		f.mu.Unlock()
		return err
	}
	reload.Do()
	return nil
}

func newServer() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "server",
		GroupID: groupServe,
		Short:   "Run name server and broker",
		Long: "Runs name server, broker and HTTP in one process, in the foreground.\n\n" +
			"Settings come from defaults, --config files, METAQ_… environment variables and flags; a later source wins.\n" +
			"SIGTERM and SIGINT stop it within 10 s, a second one at once; SIGHUP reads the configuration again.",
		Example: "  metaq server --data ./data\n  metaq server --config broker.conf --durability async\n" +
			"  metaq server --set max-message-bytes=1MiB --set retention-time=7d",
		Args: arguments(cobra.NoArgs),
	}
	flags := addSettingsFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		settings, report, err := flags.load()
		if err != nil {
			return err
		}
		level := new(slog.LevelVar)
		level.Set(settings.LogLevel)
		log := daemon.NewLogger(cmd.ErrOrStderr(), level)
		for _, note := range report.Notes {
			log.Info("configuration", "note", note)
		}
		reload := daemon.NewReload(settings, flags.load, log)
		reload.Subscribe(func(s daemon.Settings) { level.Set(s.LogLevel) })
		ctx, stop := daemon.Signals(context.WithoutCancel(cmd.Context()), daemon.SignalOptions{Reload: reload.Do, Log: log})
		defer stop()
		if limit, err := daemon.LimitMemory(); err != nil {
			log.Warn("memory limit not set", "error", err)
		} else if limit > 0 {
			log.Debug("memory limit", "bytes", limit)
		}
		return runServer(ctx, settings, reload, func(changes map[string]string) error { return flags.override(changes, reload) }, log)
	}
	return cmd
}
