// Rules of resolution and evaluation, each checked against gin-config's behaviour.
#include "gin/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "base/file.h"
#include "gin/test_registry.h"

namespace t5x::gin {
namespace {

using ::testing::HasSubstr;

// A configuration of the test registry, from text.
struct Fixture {
  explicit Fixture(const std::string& text = "") : config(test.registry) {
    config.set_main_module("t5x.train");
    if (!text.empty()) config.parse_string(text, "x.gin");
  }
  std::string echo(const std::string& name = "lib.echo") { return config.call(name).repr(); }
  TestRegistry test;
  Config config;
};

TEST(Names, ShortestUnambiguousSuffixResolves) {
  Fixture f("DatasetConfig.split = 'a'\nutils.DatasetConfig.batch_size = 3");
  EXPECT_EQ(f.config.query("t5x.utils.DatasetConfig.split")->repr(), "'a'");
  EXPECT_EQ(f.config.query("DatasetConfig.batch_size")->repr(), "3");
}
TEST(Names, AliasIsTheSameConfigurable) {
  Fixture f("seqio.vocabularies.SentencePieceVocabulary.extra_ids = 3");
  EXPECT_EQ(f.config.query("seqio.SentencePieceVocabulary.extra_ids")->repr(), "3");
}
TEST(Names, AmbiguousSuffixIsAnError) {
  Fixture f("T5Config.vocab_size = 3");
  EXPECT_THAT(error_of([&] { f.config.finalize(); }), HasSubstr("ambiguous"));
}
TEST(Names, ImportOfAnIncludedFileDecides) {
  Fixture f("from t5x.examples.scalable_t5 import network\n");
  f.config.parse_string("network.T5Config.vocab_size = 3");
  EXPECT_NE(f.config.query("t5x.examples.scalable_t5.network.T5Config.vocab_size"), nullptr);
}
TEST(Names, UseDecidesBetweenEqualSuffixes) {
  Fixture f("t5x.examples.t5.network.T5Config.emb_dim = 1");
  f.config.bind("T5Config.vocab_size=4");
  EXPECT_EQ(f.config.query("t5x.examples.t5.network.T5Config.vocab_size")->repr(), "4");
}
TEST(Names, DynamicRegistrationNeedsTheImport) {
  Fixture f("from __gin__ import dynamic_registration\nutils.DatasetConfig.split = 'a'");
  EXPECT_THAT(error_of([&] { f.config.finalize(); }), HasSubstr("add 'from t5x import utils'"));
}
TEST(Names, DynamicRegistrationFollowsEveryKindOfImport) {
  Fixture f(
      "from __gin__ import dynamic_registration\nimport __main__ as script\nimport seqio\nfrom t5x import "
      "utils as u\n"
      "import t5x.trainer\nimport lib as l\nscript.train.eval_steps = 1\nseqio.Evaluator.num_examples = 2\n"
      "u.DatasetConfig.batch_size = 3\nt5x.trainer.Trainer.num_microbatches = 4\nl.echo.value = 5");
  f.config.finalize();
  EXPECT_NE(f.config.query("t5x.train.train.eval_steps"), nullptr);
  EXPECT_NE(f.config.query("t5x.utils.DatasetConfig.batch_size"), nullptr);
}
TEST(Names, UnknownModuleIsNoError) {
  Fixture f("import optax\nimport t5.data.mixtures\nlib.echo.value = 1");
  EXPECT_NO_THROW(f.config.finalize());
  EXPECT_EQ(f.config.imports().size(), 2U);
}
TEST(Names, ReferenceIntoUnknownModuleFailsOnlyWhenEvaluated) {
  Fixture f(
      "from __gin__ import dynamic_registration\nimport optax\nimport lib\nlib.echo.value = @optax.adamw()");
  f.config.finalize();
  EXPECT_THAT(error_of([&] { f.config.call("lib.echo"); }), HasSubstr("x.gin:4:18"));
}
TEST(Names, ImporterMayRegister) {
  Fixture f;
  f.config.set_module_importer([&](const std::string& module) {
    f.test.registry.add({.name = module + ".f", .params = {}, .call = [](const Args&) { return Value(5); }});
    return true;
  });
  f.config.parse_string(
      "from __gin__ import dynamic_registration\nimport lib\nimport mine\nlib.echo.value = @mine.f()");
  f.config.finalize();
  EXPECT_EQ(f.echo(), "5");
}
TEST(Names, SkipUnknownDropsBindings) {
  Fixture f;
  f.config.set_skip_unknown(true);
  f.config.parse_string("nobody.knows = 1\nnone:\n  a = 2\nlib.echo.value = 3");
  f.config.finalize();
  EXPECT_EQ(f.echo(), "3");
}
TEST(Names, SkipUnknownByNameKeepsOtherErrors) {
  Fixture f;
  f.config.set_skip_unknown(std::set<std::string>{"nobody"});
  f.config.parse_string("nobody.knows = 1\nsomebody.knows = 1");
  EXPECT_THAT(error_of([&] { f.config.finalize(); }), HasSubstr("'somebody'"));
}

TEST(Bindings, LaterWins) {
  Fixture f("lib.echo.value = 1\nlib.echo.value = 2");
  f.config.bind("lib.echo.value=3");
  EXPECT_EQ(f.echo(), "3");
}
TEST(Bindings, CallerWins) {
  Fixture f("lib.echo.value = 1");
  EXPECT_EQ(f.config.call("lib.echo", {{"value", Value(9)}}).repr(), "9");
}
TEST(Bindings, ValueFromCode) {
  Fixture f;
  f.config.bind_value("s/lib.echo.value", Value::list({1, 2}));
  EXPECT_EQ(f.echo("s/lib.echo"), "[1, 2]");
}
TEST(Bindings, FinalConfigurationIsLocked) {
  Fixture f;
  f.config.finalize();
  EXPECT_THAT(error_of([&] { f.config.bind("A=1"); }), HasSubstr("final"));
}
TEST(Bindings, FlagWithoutQuotesSaysHowToQuote) {
  Fixture f;
  EXPECT_THAT(error_of([&] { f.config.bind("MODEL_DIR=/tmp/x"); }), HasSubstr("--gin.MODEL_DIR='\"text\"'"));
}

TEST(Scopes, InnermostWins) {
  Fixture f("echo.value = 1\na/echo.value = 2\na/b/echo.value = 3\nb/echo.value = 4");
  EXPECT_EQ(f.echo() + f.echo("a/lib.echo") + f.echo("a/b/lib.echo") + f.echo("a/c/lib.echo"), "1232");
}
TEST(Scopes, OuterBindingsShowThrough) {
  Fixture f("echo.value = 1\na/echo.other = 2");
  EXPECT_EQ(f.echo("a/lib.echo"), "1");
}
TEST(Scopes, ReferenceWithoutScopeInheritsTheCaller) {
  Fixture f("echo.value = @add()\nadd.a = 1\nadd.b = 0\ns/add.a = 5");
  EXPECT_EQ(f.echo("s/lib.echo"), "5");
}
TEST(Scopes, ReferenceWithScopeReplacesTheCallers) {
  Fixture f("echo.value = @t/add()\nadd.a = 1\nadd.b = 0\ns/add.a = 5\ns/t/add.a = 6");
  EXPECT_EQ(f.echo("s/lib.echo"), "1");
}
TEST(Scopes, MacroIsAScope) {
  Fixture f("echo.value = %M\nM = @add()\nadd.a = 1\nadd.b = 0\nM/add.a = 5\ns/add.a = 7");
  EXPECT_EQ(f.echo("s/lib.echo"), "5");
}
TEST(Scopes, GuardAppendsAndRestores) {
  Fixture f("echo.value = 1\na/b/echo.value = 2");
  const ScopeGuard outer("a");
  {
    const ScopeGuard inner("b");
    EXPECT_EQ(current_scope(), "a/b");
    EXPECT_EQ(f.echo(), "2");
  }
  EXPECT_EQ(f.echo(), "1");
}
TEST(Scopes, EachThreadHasItsOwn) {
  const ScopeGuard scope("a");
  std::string seen = "x";
  std::thread([&] { seen = current_scope(); }).join();
  EXPECT_EQ(seen, "");
}

TEST(Macros, AreLazy) {
  Fixture f("echo.value = %A\nA = %B\nB = 1\nB = 2");
  EXPECT_EQ(f.echo(), "2");
}
TEST(Macros, InsideContainers) {
  Fixture f("echo.value = {'a': [%A, (%A,)]}\nA = 1");
  EXPECT_EQ(f.echo(), "{'a': [1, (1,)]}");
}
TEST(Macros, LongForm) {
  Fixture f("echo.value = @A/macro()\nA/macro.value = 1");
  EXPECT_EQ(f.echo(), "1");
}
TEST(Macros, LongFormBlock) {
  Fixture f("echo.value = %A\nA/gin.macro:\n  value = 1");
  f.config.finalize();
  EXPECT_EQ(f.echo(), "1");
}
TEST(Macros, ScopedNameFallsBackToItsPrefix) {
  Fixture f("echo.value = %A/b\nA = 1");
  EXPECT_EQ(f.echo(), "1");
}
TEST(Macros, ConstantsBySuffix) {
  Fixture f;
  f.test.registry.constant("some.module.PI", 3.5);
  f.config.parse_string("echo.value = [%module.PI, %PI]");
  EXPECT_EQ(f.echo(), "[3.5, 3.5]");
}
TEST(Macros, CycleIsAnError) {
  Fixture f("echo.value = %A\nA = %B\nB = %A");
  EXPECT_THAT(error_of([&] { f.echo(); }), HasSubstr("%A -> %B -> %A"));
}

TEST(References, EvaluatedAnewEachTime) {
  Fixture f("echo.value = [@PyLoggingLogger(), @PyLoggingLogger()]");
  f.echo();
  EXPECT_EQ(f.test.calls["seqio.PyLoggingLogger"], 2);
}
TEST(References, SingletonIsMadeOncePerName) {
  Fixture f(
      "echo.value = [@A/singleton(), @A/gin.singleton(), @B/singleton()]\nsingleton.constructor = "
      "@PyLoggingLogger");
  f.echo();
  EXPECT_EQ(f.test.calls["seqio.PyLoggingLogger"], 2);
}
TEST(References, CallableIsCalledLaterWithMoreArguments) {
  Fixture f("echo.value = @s/add\nadd.a = 1\ns/add.b = 2");
  const Value value = f.config.call("lib.echo");
  const Callable add = Convert<Callable>::from(value);
  EXPECT_EQ(add({{"a", Value(10)}}).as_int() * 100 + add.call({20, 30}).as_int(), 1250);
}
TEST(References, CallableWithTooManyArgumentsThrows) {
  Fixture f("echo.value = @add");
  const Callable add = Convert<Callable>::from(f.config.call("lib.echo"));
  EXPECT_THAT(error_of([&] { add.call({1, 2, 3}); }), HasSubstr("at most 2"));
}
TEST(References, SelfNeedingValueIsAnError) {
  Fixture f("echo.value = @echo()");
  EXPECT_THAT(error_of([&] { f.echo(); }), HasSubstr("lib.echo -> lib.echo"));
}
TEST(References, DefaultMayBeAReference) {
  Fixture f;
  Reference reference;
  reference.name = "lib.add";
  reference.call = true;
  f.test.registry.add({.name = "lib.user",
                       .params = {param<int64_t>("x", Value(reference))},
                       .call = [](const Args& args) { return args.value("x"); }});
  f.config.parse_string("add.a = 1\nadd.b = 2");
  EXPECT_EQ(f.config.call("lib.user").repr(), "3");
}

TEST(Objects, GivenOutAsTheirBase) {
  const Value value = Value::object(std::make_shared<SentencePiece>("f"));
  EXPECT_NE(value.as_object().as<Vocabulary>(), nullptr);
  EXPECT_EQ(value.as_object().as<SentencePiece>()->file, "f");
  EXPECT_EQ(value.as_object().as<Dataset>(), nullptr);
}
TEST(Objects, RunThroughAWholeConfiguration) {
  Fixture f;
  f.config.add_search_path(std::string(T5X_SOURCE_DIR) + "/tests/golden/gin");
  f.config.parse_file("top.gin");
  f.config.finalize();
  EXPECT_EQ(f.config.call("t5x.train.train").as_int(), 1000);
}
TEST(Objects, WrongTypeNamesBothTypes) {
  Fixture f(
      "EncoderDecoderModel:\n  module = 1\n  optimizer_def = 1\n  input_vocabulary = @DatasetConfig()\n"
      "  output_vocabulary = @SentencePieceVocabulary()\nSentencePieceVocabulary.sentencepiece_model_file = "
      "''\n"
      "DatasetConfig:\n  mixture_or_task_name = ''\n  split = ''\n  batch_size = 1\n  shuffle = True\n  seed "
      "= 1");
  EXPECT_THAT(
      error_of([&] { f.config.call("EncoderDecoderModel"); }),
      HasSubstr("expected an object of type t5x::gin::Vocabulary for parameter 'input_vocabulary' of "
                "configurable 't5x.models.EncoderDecoderModel', got an object of type t5x::gin::Dataset, set "
                "at x.gin:4:22"));
}

TEST(ValueOf, KeyOfMacroOrParameter) {
  Fixture f("A = [%B]\nB = 1\ns/lib.echo.value = %A");
  EXPECT_EQ(f.config.value("A").repr() + f.config.value("s/lib.echo.value").repr(), "[1][1]");
}

TEST(DryRun, RunsOnlyWhatIsCheap) {
  Fixture f;
  f.config.add_search_path(std::string(T5X_SOURCE_DIR) + "/tests/golden/gin");
  f.config.parse_file("top.gin");
  f.config.finalize();
  f.config.validate("t5x.train.train");
  EXPECT_THAT(f.test.calls, ::testing::ElementsAre(::testing::Pair("t5x.utils.DatasetConfig", 1)));
}
TEST(DryRun, FindsWhatANestedCallLacks) {
  Fixture f("echo.value = [@Transformer()]\nTransformer.config = @t5.network.T5Config()");
  EXPECT_THAT(error_of([&] { f.config.validate("lib.echo"); }),
              HasSubstr("'vocab_size' (--gin.t5.network.T5Config"));
}
TEST(DryRun, ChecksBindingsOfReferencesThatAreCalledLater) {
  Fixture f(
      "Trainer.learning_rate_fn = @create_learning_rate_scheduler()\nPyLoggingLogger.output_dir = @add()\n"
      "add.a = 1\nadd.b = 2\necho.value = @PyLoggingLogger");
  EXPECT_THAT(error_of([&] { f.config.validate("lib.echo"); }),
              HasSubstr("expected a str for parameter 'output_dir'"));
}

}  // namespace
}  // namespace t5x::gin
