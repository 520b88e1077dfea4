#!/bin/sh
# Makes the files of this folder with Stanford's programs; $1 is the folder that holds them.
set -e
cd "$(dirname "$0")"
"$1/vocab_count" -min-count 1 -verbose 0 < text.txt > vocab.txt
"$1/cooccur" -memory 0.5 -vocab-file vocab.txt -verbose 0 -window-size 4 < text.txt > pairs.bin
"$1/shuffle" -memory 0.5 -verbose 0 -seed 1 < pairs.bin > cells.bin
"$1/glove" -input-file cells.bin -vocab-file vocab.txt -save-file vectors -gradsq-file squares \
    -vector-size 6 -iter 2 -threads 1 -x-max 2 -eta 0.05 -alpha 0.75 -binary 2 -model 0 \
    -save-init-param 1 -seed 3 -verbose 0
mv vectors.000.bin start.bin
mv vectors.bin end.bin
rm -f pairs.bin squares.txt vectors.000.txt squares.000.*
