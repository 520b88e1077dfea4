#!/bin/sh
# Print what metrics.json keeps, and write the trigram model. KENLM is the folder of lmplz and query.
set -eu
cd "$(dirname "$0")"
for options in "-o 2" "-o 3" "-o 5" "-o 3 --prune 0 0 1"; do
    # shellcheck disable=SC2086
    "$KENLM/lmplz" $options -S 300M --text text.txt --arpa model.arpa
    "$KENLM/query" -v summary model.arpa < held-out.txt
    if [ "$options" = "-o 3" ]; then gzip -n -c model.arpa > trigram.arpa.gz; fi
done
rm model.arpa
