# Steps that are timed and counted, and the summary at the end. Sourced, not run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Fails where an engine is missing, instead of leaving its tests out.
export ZAEL_REQUIRE_ENGINES=1

results=.cache/vitest-results.json
passed=0
failed=0
summary=()
failures=()

# Runs a command and counts it: step "what it is" command…
step() {
  local name=$1 started=$SECONDS verdict
  shift
  echo "── $name: $*"
  if "$@"; then
    passed=$((passed + 1))
    verdict=ok
  else
    failed=$((failed + 1))
    verdict=FAILED
  fi
  summary+=("$(printf '%-6s %4d s  %s' "$verdict" $((SECONDS - started)) "$name")")
  echo "── ${summary[-1]}"
}

# The same for a command that runs vitest, whose tests are counted too.
tests() {
  rm -f "$results"
  step "$@" --reporter=default --reporter=json --outputFile.json="$results"
  [ -f "$results" ] || return
  local test_passed test_failed
  read -r test_passed test_failed < <(node -p 'const r = JSON.parse(fs.readFileSync(process.argv[1])); `${r.numPassedTests} ${r.numFailedTests}`' "$results")
  passed=$((passed + test_passed))
  failed=$((failed + test_failed))
  mapfile -t -O "${#failures[@]}" failures < <(node tools/failed-tests.mjs "$results")
}

# Prints which tests failed, how long each step took and what came of it all, and ends the script.
finish() {
  [ "${#failures[@]}" -eq 0 ] || printf '%s\n' "── failed tests" "${failures[@]}"
  printf '%s\n' "── steps" "${summary[@]}" "── $((SECONDS / 60)) min $((SECONDS % 60)) s"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}
