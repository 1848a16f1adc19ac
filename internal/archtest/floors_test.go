package archtest

import (
	"fmt"
	"path"
	"strings"
)

const module = "github.com/metaqio/metaq"

// A room is one row of the table of floors.
type room struct {
	path   string // below the module; "x/*" stands for each direct child of x, "x/..." for x and all below
	floor  int    // a package imports lower floors only
	onlyBy string // when set, the only folder whose packages may import this one
}

// floors is the house, from the ground up: see docs/ARCHITECTURE.md.
// Packages on one floor never import each other, which is also why views do not know each other.
var floors = []room{
	{path: "message", floor: 0},
	{path: "internal/stats", floor: 0},
	{path: "internal/archtest", floor: 0, onlyBy: "nobody"},

	{path: "internal/entry", floor: 1},
	{path: "internal/protocol", floor: 1},
	{path: "internal/commitlog", floor: 1},
	{path: "internal/kv", floor: 1},
	{path: "internal/eventloop", floor: 1},
	{path: "internal/filter/sql", floor: 1},
	{path: "internal/waiters", floor: 1},
	{path: "internal/daemon", floor: 1, onlyBy: "cmd"},

	{path: "internal/remoting", floor: 2},
	{path: "internal/raftlog", floor: 2},
	{path: "internal/catalog", floor: 2},
	{path: "internal/filter", floor: 2},

	{path: "internal/shard", floor: 3},
	{path: "client", floor: 3},
	{path: "internal/admin", floor: 3, onlyBy: "cmd"},
	{path: "internal/bench", floor: 3, onlyBy: "cmd"},

	{path: "internal/view/*", floor: 4},

	{path: "internal/broker", floor: 5},
	{path: "internal/nameserver", floor: 5},

	{path: "internal/remotingdoor", floor: 6},
	{path: "internal/httpdoor", floor: 6},
	{path: "internal/grpcdoor", floor: 6},

	{path: "cmd/*", floor: 7, onlyBy: "nobody"},
	{path: "test/...", floor: 8, onlyBy: "nobody"},
}

// extra are rules that a floor number cannot say: from -> the only packages of ours it may import.
var extra = map[string][]string{
	"client": {"message", "internal/protocol", "internal/remoting", "internal/eventloop"},
}

// An owner is a big library and the packages that may import it.
type owner struct {
	module string   // import path; covers everything below it
	by     []string // as room.path
	tests  bool     // tests of any package may import it too
	why    string
}

// owners keeps a change of a big library a change of one package.
var owners = []owner{
	{module: "go.etcd.io/raft/v3", by: []string{"internal/raftlog"}, why: "raft stays behind the door of raftlog"},
	{
		module: "github.com/cockroachdb/pebble/v2/vfs", tests: true,
		by:  []string{"internal/commitlog", "internal/kv", "internal/raftlog", "internal/shard", "internal/nameserver", "cmd/*"},
		why: "vfs is the seam to the disk for those who write files",
	},
	{module: "github.com/cockroachdb/pebble/v2", by: []string{"internal/kv"}, why: "the key-value store stays behind the door of kv"},
	{
		module: "github.com/prometheus", by: []string{"internal/httpdoor"},
		why: "rooms count with atomics and export plain statistics; httpdoor alone turns them into metrics",
	},
	{module: "github.com/spf13", by: []string{"cmd/*"}, why: "flags belong to the program"},
	{module: "github.com/jedib0t/go-pretty/v6", by: []string{"cmd/*"}, why: "tables are how the program prints"},
	{module: "github.com/knadh/koanf", by: []string{"internal/daemon"}, why: "configuration is read in one place"},
	{
		module: "github.com/magiconair/properties", by: []string{"internal/daemon", "internal/remotingdoor"},
		why: "configuration is read in one place; the classic protocol sends changes of it in this form",
	},
	{module: "go.yaml.in/yaml", by: []string{"internal/daemon"}, why: "configuration is read in one place"},
	{module: "github.com/KimMachineGun/automemlimit", by: []string{"internal/daemon"}, why: "the process shell sets the memory limit"},
	{module: "google.golang.org/grpc", by: []string{"internal/grpcdoor", "client"}, why: "gRPC stays behind its door and in the SDK"},
}

// public packages end up in other people's programs: these libraries must not come with them, not even indirectly.
var public = map[string][]string{
	"message": {"github.com/", "go.etcd.io/", "google.golang.org/", "go.yaml.in/"},
	"client": {
		"go.etcd.io/raft/", "github.com/cockroachdb/pebble/", "github.com/prometheus/", "github.com/spf13/",
		"github.com/knadh/", "go.yaml.in/",
	},
}

// covers reports whether pattern (a room.path) stands for the package at rel.
func covers(pattern, rel string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return rel == below || strings.HasPrefix(rel, below+"/")
	}
	if parent, ok := strings.CutSuffix(pattern, "/*"); ok {
		return path.Dir(rel) == parent
	}
	return rel == pattern
}

func coversAny(patterns []string, rel string) bool {
	for _, p := range patterns {
		if covers(p, rel) {
			return true
		}
	}
	return false
}

// roomOf finds the row of a package. A program below a room (a code generator) belongs to that room.
func roomOf(p pkg) (room, bool) {
	for _, r := range floors {
		if covers(r.path, p.rel) {
			return r, true
		}
	}
	if p.Name != "main" {
		return room{}, false
	}
	for dir := path.Dir(p.rel); dir != "."; dir = path.Dir(dir) {
		for _, r := range floors {
			if covers(r.path, dir) {
				return room{path: p.rel, floor: r.floor, onlyBy: "nobody"}, true
			}
		}
	}
	return room{}, false
}

// checkFloors returns one line for every import that does not point down.
func checkFloors(pkgs []pkg) (problems []string) {
	rooms := map[string]room{}
	for _, p := range pkgs {
		r, ok := roomOf(p)
		if !ok {
			problems = append(problems, fmt.Sprintf("%s is not in the table of floors: decide which floor it stands on "+
				"(what does it know?), then add a line to internal/archtest/floors_test.go and to docs/ARCHITECTURE.md", p.rel))
			continue
		}
		rooms[p.rel] = r
	}
	for _, p := range pkgs {
		from, ok := rooms[p.rel]
		if !ok {
			continue
		}
		for _, imp := range p.Imports {
			rel, ours := strings.CutPrefix(imp, module+"/")
			if to, known := rooms[rel]; ours && known {
				problems = append(problems, checkImport(p.rel, rel, from, to)...)
			}
		}
	}
	return problems
}

func checkImport(from, to string, fromRoom, toRoom room) (problems []string) {
	if toRoom.floor >= fromRoom.floor {
		why := "imports point down only"
		if strings.HasPrefix(from, "internal/view/") && strings.HasPrefix(to, "internal/view/") {
			why = "views never know each other; the broker combines them"
		}
		problems = append(problems, fmt.Sprintf("%s (floor %d) imports %s (floor %d): %s. Pass what is needed in by a small interface or "+
			"a callback, or move the shared type down", from, fromRoom.floor, to, toRoom.floor, why))
	}
	if toRoom.onlyBy != "" && !strings.HasPrefix(from, toRoom.onlyBy+"/") {
		problems = append(problems, fmt.Sprintf("%s imports %s, which only %s may import", from, to, toRoom.onlyBy))
	}
	if allowed, limited := extra[from]; limited && !coversAny(allowed, to) {
		problems = append(problems, fmt.Sprintf("%s imports %s: of ours it may import only %s", from, to, strings.Join(allowed, ", ")))
	}
	return problems
}

// ownerOf finds the first row that covers an import path; rows of sub-packages stand before those of their parents.
func ownerOf(imp string) (owner, bool) {
	for _, o := range owners {
		if imp == o.module || strings.HasPrefix(imp, o.module+"/") {
			return o, true
		}
	}
	return owner{}, false
}

// checkOwners returns one line for every big library imported by a package that does not own it.
func checkOwners(pkgs []pkg) (problems []string) {
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			if o, ok := ownerOf(imp); ok && !coversAny(o.by, p.rel) {
				problems = append(problems, notOwner(p.rel, imp, o))
			}
		}
		for _, imp := range append(p.TestImports, p.XTestImports...) {
			if o, ok := ownerOf(imp); ok && !o.tests && !coversAny(o.by, p.rel) {
				problems = append(problems, notOwner(p.rel+" (test)", imp, o))
			}
		}
	}
	return problems
}

func notOwner(from, imp string, o owner) string {
	return fmt.Sprintf("%s imports %s: only %s may, because %s", from, imp, strings.Join(o.by, ", "), o.why)
}

// checkPublic returns one line for every library that would come along with a public package.
func checkPublic(rel string, deps []string) (problems []string) {
	for _, banned := range public[rel] {
		for _, d := range deps {
			if strings.HasPrefix(d, banned) && !strings.HasPrefix(d, module+"/") {
				problems = append(problems, fmt.Sprintf("%s drags in %s: it is public, and its users would build that too", rel, d))
			}
		}
	}
	return problems
}
