package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pkg is what `go list -json` tells of a package.
type pkg struct {
	Dir, ImportPath, Name                        string
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
	IgnoredGoFiles                               []string
	Imports, TestImports, XTestImports, Deps     []string
	rel                                          string // import path below the module
}

// listed is made once: every test looks at the same house.
var listed []pkg

func TestMain(m *testing.M) {
	out, err := goList("./...")
	if err != nil {
		os.Stderr.WriteString("go list: " + err.Error() + "\n")
		os.Exit(1)
	}
	listed = out
	os.Exit(m.Run())
}

func goList(pattern string) ([]pkg, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-e", "-json", pattern)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, errors.New(string(e.Stderr))
		}
		return nil, err
	}
	return decodeList(strings.NewReader(string(out)))
}

func decodeList(r io.Reader) (pkgs []pkg, err error) {
	for dec := json.NewDecoder(r); ; {
		var p pkg
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs, nil
		case err != nil:
			return nil, err
		}
		p.rel = strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		pkgs = append(pkgs, p)
	}
}

func report(t *testing.T, problems []string) {
	t.Helper()
	slices.Sort(problems)
	for _, p := range slices.Compact(problems) {
		t.Error(p)
	}
}

func TestImportsPointDown(t *testing.T) { report(t, checkFloors(listed)) }

func TestBigLibrariesHaveOneOwner(t *testing.T) { report(t, checkOwners(listed)) }

func TestPublicPackagesStayLight(t *testing.T) {
	for _, p := range listed {
		report(t, checkPublic(p.rel, p.Deps))
	}
}

func TestEveryPackageHasATour(t *testing.T) {
	for _, p := range listed {
		report(t, checkDoc(p))
	}
}

func TestSourcesKeepTheHouseRules(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, p := range listed {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
			full := filepath.Join(p.Dir, name)
			src, err := os.ReadFile(full)
			if errors.Is(err, os.ErrNotExist) {
				continue // removed since the listing
			}
			require.NoError(t, err)
			shown, err := filepath.Rel(root, full)
			require.NoError(t, err)
			report(t, checkSource(filepath.ToSlash(shown), src))
		}
	}
}
