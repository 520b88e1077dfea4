#!/usr/bin/env bash
# Make the models here with Facebook's program: make.sh FASTTEXT DUMP
# DUMP prints exact numbers (see README.md): DUMP MODEL words|predict [K] < LINES
set -euo pipefail
fasttext=$1 dump=$2
cd "$(dirname "$0")"
# Fewer than eleven threads leave a part of a small matrix as the memory happened to be.
once="-thread 11 -seed 7 -verbose 0"

$fasttext skipgram -input text.txt -output skipgram -dim 8 -bucket 150 -minn 3 -maxn 6 -minCount 1 -epoch 20 -lr 0.05 $once
$fasttext cbow -input text.txt -output cbow -dim 5 -bucket 97 -minn 1 -maxn 3 -minCount 2 -epoch 20 -loss hs $once
$fasttext skipgram -input text.txt -output words-only -dim 4 -minn 0 -maxn 0 -minCount 1 -epoch 5 -loss softmax $once
$fasttext supervised -input labelled.txt -output softmax -dim 6 -bucket 150 -minn 2 -maxn 4 -wordNgrams 2 -epoch 400 -lr 0.5 $once
$fasttext supervised -input labelled.txt -output hs -dim 4 -epoch 400 -lr 0.5 -loss hs $once
$fasttext supervised -input labelled.txt -output ova -dim 6 -bucket 60 -wordNgrams 3 -epoch 400 -lr 0.5 -loss ova $once
$fasttext supervised -input labelled.txt -output ns -dim 4 -bucket 50 -minn 2 -maxn 2 -epoch 400 -lr 0.5 -loss ns $once
# Some output rows make it worth quantising them: 260 labels.
numbers=$(mktemp)
names=(zero one two three four five six seven eight nine)
for number in $(seq 0 259); do
  echo "__label__$number ${names[number / 100]} ${names[number / 10 % 10]} ${names[number % 10]} 第 $number"
done > "$numbers"
$fasttext supervised -input "$numbers" -output numbers -dim 5 -bucket 40 -minn 1 -maxn 2 -minCount 1 -epoch 50 $once
rm "$numbers"

quantize() { # name of the .ftz, model, options
  cp "$2.bin" "$1.bin"
  $fasttext quantize -input labelled.txt -output "$1" "${@:3}" -thread 1 -verbose 0
  rm "$1.bin"
}
quantize plain softmax -dsub 2
quantize cut softmax -qnorm -cutoff 300 -dsub 3
quantize retrained softmax -qnorm -cutoff 280 -retrain -epoch 3 -dsub 4
quantize qout numbers -qnorm -qout -dsub 2
rm numbers.bin
find . -name '*.vec' ! -name skipgram.vec -delete

for model in *.bin *.ftz; do
  "$dump" "$model" words < words.txt > "$model.words.txt"
done
for model in softmax.bin hs.bin ova.bin ns.bin plain.ftz cut.ftz retrained.ftz qout.ftz; do
  "$dump" "$model" predict 3 < questions.txt > "$model.predictions.txt"
done
