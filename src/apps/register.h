// Everything that a gin file can name, under the Python names that t5x and seqio users write. Parameters,
// defaults and meaning are those of t5x (April 2026), seqio 0.0.20 and t5 0.9.4; docs/configs.md lists what
// is accepted and ignored and what is refused.
#pragma once

#include "apps/settings.h"
#include "gin/registry.h"

namespace t5x::apps {

void register_all(gin::Registry& registry, const ContextPtr& context);

// Vocabularies of seqio and t5.
void register_vocabularies(gin::Registry& registry, const ContextPtr& context);
// seqio.*: features, sources, tasks, mixtures, the evaluator.
void register_seqio(gin::Registry& registry);
// seqio.preprocessors, t5.data.preprocessors, t5.evaluation.metrics and postprocessors.
void register_preprocessors(gin::Registry& registry);
void register_metrics(gin::Registry& registry);
// t5x.models, t5x.decoding, t5x.examples.t5.network.
void register_models(gin::Registry& registry);
// t5x.adafactor.
void register_optimizers(gin::Registry& registry);
// t5x.partitioning, t5x.trainer, t5x.gin_utils and the learning rate of t5x.utils.
void register_trainer(gin::Registry& registry);
// t5x.utils and t5x.train.train, whose result is a TrainConfig; its mesh has the model axis only, as the
// number of devices is not known yet.
void register_train(gin::Registry& registry);

}  // namespace t5x::apps
