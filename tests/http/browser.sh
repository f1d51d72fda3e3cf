#!/bin/sh
# Tests one view of the page in headless Chromium with browser/VIEW.py: browser.sh VIEW [OPTION of the
# server…]. Saves screenshots in ./screenshots. Ends with status 77 without Chromium, its driver or Selenium.
# shellcheck source=tests/http/server.sh disable=SC2119
. "$(dirname "$0")/server.sh"
view=$1
shift

for program in chromium chromedriver; do
    command -v $program >/dev/null || {
        echo "no $program is here: nothing is tested (Debian: apt-get install chromium chromium-driver)"
        exit 77
    }
done
make_venv browser || exit 77

case $view in
*_gpu) MATMULD=$FAULTY && start "$@" ;;
*) start --backend cpu "$@" ;;
esac
checks=$((checks + 1))
mkdir -p screenshots
"$venv/bin/python3" "$here/browser/$view.py" "$url" screenshots || fail "browser/$view.py"
stop
finish
