#!/bin/sh
# Judges the answer and the tray, by the criteria that wanted.sh beside it names. Each is 0 or 1 and
# the reward is their mean, in /logs/verifier/reward.json. No reward and a non-zero exit where it
# cannot judge: what is to be judged did not arrive.
set -euf
files=${FILESYSTEM_ROOT:-/filesystem} logs=${LOGS_ROOT:-/logs}
. "${0%/*}/wanted.sh"
got=0 all=0 marks=

missing() { echo "verifier: $1 did not arrive, so there is nothing to judge" >&2; exit 1; }

mark() { # name, 0 or 1
    got=$((got + $2)) all=$((all + 1)) marks="$marks, \"$1\": $2"
}

says() { # whether the answer names the first word, and none of the others
    right=0
    for word in $answer; do
        [ "$word" != "$1" ] || { right=1; continue; }
        case " $2 " in *" $word "*) right=0; break ;; esac
    done
    echo $right
}

[ -d "$logs/artifacts" ] || missing "$logs/artifacts"
answer=$(head -c 4096 "$logs/artifacts/final_answer.txt" 2>/dev/null | tr A-Z a-z | tr -cs a-z ' ') || answer=

if [ -n "$keeper" ]; then mark keeper "$(says "$keeper" 'ada ben cleo dan eva finn gia hugo')"; fi
if [ -n "$colour" ]; then
    mark colour "$(says "$colour" 'amber blue coral green orange pink teal white')"
fi
if [ -n "$named" ]; then
    mark named "$(says "$named" 'alpha bravo charlie delta echo foxtrot golf hotel')"
fi

if [ -n "$card" ]; then
    [ -d "$files/tray" ] || missing "$files/tray"
    copies=0 copy= text= right=0
    set +f
    for each in "$files"/tray/* "$files"/tray/.[!.]*; do
        [ -e "$each" ] && [ "${each##*/}" != label.txt ] || continue
        copies=$((copies + 1)) copy=$each
    done
    set -f
    if [ $copies = 1 ] && [ -f "$copy" ]; then text=$(head -c 4096 "$copy" | tr '\n' '|'); fi
    mark card "$([ "$text" != "$card" ] || right=1; echo $right)"
    right=0
    mark place "$([ $copies != 1 ] || [ "${copy##*/}" != "$place.txt" ] || right=1; echo $right)"
fi

[ -d "$logs/verifier" ] || mkdir -p "$logs/verifier"
thousandths=$((1000 * got / all))
printf '{"reward": %d.%03d%s}\n' $((thousandths / 1000)) $((thousandths % 1000)) "$marks" \
    > "$logs/verifier/.reward.json"
mv "$logs/verifier/.reward.json" "$logs/verifier/reward.json"
