// What a person is told when a configuration is wrong: the name, the file and line, and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "gin/config.h"
#include "gin/test_registry.h"

namespace t5x::gin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string finalize_error(const std::string& text) {
  TestRegistry test;
  Config config(test.registry);
  return error_of([&] {
    config.parse_string(text, "x.gin");
    config.finalize();
  });
}
std::string call_error(const std::string& text, const std::string& name) {
  TestRegistry test;
  Config config(test.registry);
  return error_of([&] {
    config.parse_string(text, "x.gin");
    config.call(name);
  });
}

TEST(BadConfig, UnknownConfigurable) {
  EXPECT_THAT(finalize_error("\nutils.DatasetConfg.split = 'a'"),
              AllOf(StartsWith("x.gin:2:1: no configurable 'utils.DatasetConfg'"),
                    HasSubstr("did you mean 'utils.DatasetConfig'")));
}
TEST(BadConfig, UnknownConfigurableOfAnImportedModule) {
  EXPECT_THAT(
      finalize_error(
          "from __gin__ import dynamic_registration\nfrom t5x import utils\nutils.DataConfig.a = 1"),
      AllOf(StartsWith("x.gin:3:1: no configurable 'utils.DataConfig'"), HasSubstr("'utils.DatasetConfig'")));
}
TEST(BadConfig, BindingIntoUnknownModule) {
  EXPECT_THAT(finalize_error("from __gin__ import dynamic_registration\nimport optax\noptax.adamw.b1 = 1"),
              AllOf(StartsWith("x.gin:3:1: no configurable 'optax.adamw'"), HasSubstr("module 'optax'")));
}
TEST(BadConfig, UnknownParameter) {
  EXPECT_THAT(
      finalize_error("DatasetConfig:\n  splt = 'a'"),
      StartsWith("x.gin:2:3: configurable 't5x.utils.DatasetConfig' has no parameter 'splt'; did you mean "
                 "'split'"));
}
TEST(BadConfig, UnknownReference) {
  EXPECT_THAT(
      finalize_error("lib.echo.value = [@seqio.JSONLoger]"),
      AllOf(StartsWith("x.gin:1:19: unknown reference '@seqio.JSONLoger'"), HasSubstr("'seqio.JSONLogger'")));
}
TEST(BadConfig, UnknownMacro) {
  EXPECT_THAT(
      finalize_error("BATCH_SIZE = 1\nlib.echo.value = %BATCHSIZE"),
      AllOf(
          StartsWith("x.gin:2:18: the macro '%BATCHSIZE' is used in 'echo.value' but never set; did you mean "
                     "'BATCH_SIZE'"),
          HasSubstr("--gin.BATCHSIZE=VALUE")));
}
TEST(BadConfig, UnknownMacroInsideAMacro) {
  EXPECT_THAT(finalize_error("A = [%B]"), StartsWith("x.gin:1:6: the macro '%B'"));
}
TEST(BadConfig, MissingRequiredMacro) {
  EXPECT_THAT(finalize_error("TRAIN_STEPS = %gin.REQUIRED"),
              AllOf(StartsWith("x.gin:1:15: 'TRAIN_STEPS' is marked %gin.REQUIRED here but never set"),
                    HasSubstr("--gin.TRAIN_STEPS=VALUE")));
}
TEST(BadConfig, MissingRequiredParameter) {
  EXPECT_THAT(finalize_error("s/utils.DatasetConfig.split = %gin.REQUIRED"),
              HasSubstr("--gin.s/DatasetConfig.split=VALUE"));
}
TEST(BadConfig, MissingRequiredMacroWhenEvaluated) {
  EXPECT_THAT(
      call_error("A = %gin.REQUIRED\nlib.echo.value = %A", "lib.echo"),
      AllOf(HasSubstr("'A' is missing: it was marked %gin.REQUIRED at x.gin:1:5 and is used at x.gin:2:18"),
            HasSubstr("--gin.A=VALUE")));
}
TEST(BadConfig, MissingRequiredParameterWhenEvaluated) {
  EXPECT_THAT(call_error("lib.add.a = %gin.REQUIRED", "lib.add"),
              AllOf(HasSubstr("'lib.add.a' is missing: it was marked %gin.REQUIRED at x.gin:1:13"),
                    HasSubstr("--gin.add.a=VALUE")));
}
TEST(BadConfig, UnboundParametersAreListedTogether) {
  EXPECT_THAT(
      call_error("echo.value = 1", "s/lib.add"),
      StartsWith("configurable 's/lib.add' needs values that nobody gave: 'a' (--gin.s/add.a=VALUE), 'b'"));
}
TEST(BadConfig, TypeMismatchAtFinalize) {
  EXPECT_THAT(finalize_error("DatasetConfig.batch_size = 'abc'"),
              StartsWith("x.gin:1:28: expected an int for parameter 'batch_size' of configurable "
                         "'t5x.utils.DatasetConfig', got the str 'abc'"));
}
TEST(BadConfig, TypeMismatchThroughAMacroNamesBothPlaces) {
  EXPECT_THAT(finalize_error("B = 1.5\nDatasetConfig.batch_size = %B"),
              AllOf(StartsWith("x.gin:1:5: expected an int"), HasSubstr("by %B, used at x.gin:2:28")));
}
TEST(BadConfig, TypeMismatchOfAnEvaluatedValue) {
  EXPECT_THAT(
      call_error("lib.add:\n  a = @echo()\n  b = 1\nlib.echo.value = 'x'", "lib.add"),
      HasSubstr(
          "expected an int for parameter 'a' of configurable 'lib.add', got the str 'x', set at x.gin:2:7"));
}
TEST(BadConfig, BoolIsNoInt) {
  EXPECT_THAT(finalize_error("DatasetConfig.batch_size = True"), HasSubstr("an int"));
}
TEST(BadConfig, IntIsAFloat) { EXPECT_EQ(finalize_error("Adafactor.decay_rate = 1"), ""); }
TEST(BadConfig, NoneWhereTheDefaultIsNone) {
  EXPECT_EQ(finalize_error("PjitPartitioner.num_partitions = None"), "");
}
TEST(BadConfig, NoneElsewhere) {
  EXPECT_THAT(finalize_error("DatasetConfig.split = None"), HasSubstr("got None"));
}
TEST(BadConfig, WrongItemOfAList) {
  EXPECT_THAT(finalize_error("t5.network.T5Config.mlp_activations = ('gelu', 3)"),
              HasSubstr("a list, each item a str"));
}
TEST(BadConfig, ReferenceWhereAnIntIsWanted) {
  EXPECT_THAT(finalize_error("DatasetConfig.batch_size = @lib.add"), HasSubstr("got the reference @lib.add"));
}
TEST(BadConfig, EvaluatedReferenceMayBeAnything) {
  EXPECT_EQ(finalize_error("DatasetConfig.batch_size = @lib.add()"), "");
}
TEST(BadConfig, AllProblemsAtOnceInOrder) {
  EXPECT_THAT(
      finalize_error("A = %gin.REQUIRED\nnobody.x = 1\nlib.echo.vale = 2\nlib.echo.value = %C"),
      AllOf(StartsWith("4 problems in the configuration:\n  x.gin:1:5: 'A'"), HasSubstr("\n  x.gin:2:1: no"),
            HasSubstr("\n  x.gin:3:1: configurable"), HasSubstr("\n  x.gin:4:18: the macro '%C'")));
}
TEST(BadConfig, BlockOfUnknownConfigurableIsReportedOnce) {
  EXPECT_THAT(finalize_error("nobody:\n  a = 1\n  b = 2"), StartsWith("x.gin:1:1: no configurable 'nobody'"));
}
TEST(BadConfig, UnknownArgumentFromTheCaller) {
  TestRegistry test;
  Config config(test.registry);
  EXPECT_THAT(error_of([&] {
                config.call("lib.add", {{"aa", Value(1)}});
              }),
              HasSubstr("none of its parameters"));
}
TEST(BadConfig, ErrorInsideACallSaysHowItGotThere) {
  TestRegistry test;
  Config config(test.registry);
  config.parse_string("DatasetConfig.seed = @add()\nadd.a = 1", "x.gin");
  EXPECT_THAT(error_of([&] { config.call("DatasetConfig"); }),
              HasSubstr("\n  in 't5x.utils.DatasetConfig.seed', set at x.gin:1"));
}

TEST(BadFile, MissingFileListsWhereItLooked) {
  TestRegistry test;
  Config config(test.registry);
  config.add_search_path("/some/where");
  EXPECT_THAT(error_of([&] { config.parse_file("no/such.gin"); }),
              AllOf(HasSubstr("gin file 'no/such.gin' not found"), HasSubstr("\n    no/such.gin"),
                    HasSubstr("/some/where/no/such.gin"), HasSubstr("--gin_search_paths")));
}
TEST(BadFile, MissingIncludeNamesTheStatement) {
  TestRegistry test;
  Config config(test.registry);
  EXPECT_THAT(error_of([&] { config.parse_string("\ninclude 'no.gin'", "x.gin"); }),
              AllOf(HasSubstr("'no.gin' not found"), HasSubstr("included at x.gin:2:9")));
}
TEST(BadFile, SyntaxErrorInAnIncludeNamesBothFiles) {
  TempDir dir;
  write_file(dir / "a.gin", "include 'b.gin'");
  write_file(dir / "b.gin", "x = = 1");
  TestRegistry test;
  Config config(test.registry);
  config.add_search_path(dir.path());
  EXPECT_THAT(error_of([&] { config.parse_file("a.gin"); }),
              AllOf(HasSubstr("b.gin:1:5"), HasSubstr("a.gin:1:9")));
}
TEST(BadFile, FileThatIncludesItself) {
  TempDir dir;
  write_file(dir / "a.gin", "include 'b.gin'");
  write_file(dir / "b.gin", "include 'a.gin'");
  TestRegistry test;
  Config config(test.registry);
  config.add_search_path(dir.path());
  EXPECT_THAT(error_of([&] { config.parse_file("a.gin"); }), HasSubstr("includes itself"));
}
TEST(BadFile, DynamicRegistrationAfterAnImport) {
  EXPECT_THAT(finalize_error("import seqio\nfrom __gin__ import dynamic_registration"),
              AllOf(StartsWith("x.gin:2:1"), HasSubstr("'import seqio' came first")));
}
TEST(BadFile, UnknownGinFeature) {
  EXPECT_THAT(finalize_error("from __gin__ import x"), HasSubstr("feature 'x'"));
}

TEST(BadRegistry, NameTakenTwice) {
  TestRegistry test;
  EXPECT_THAT(error_of([&] { test.registry.add({.name = "lib.echo", .params = {}, .call = {}}); }),
              HasSubstr("already registered"));
}
TEST(BadRegistry, ConstantTakenTwice) {
  TestRegistry test;
  test.registry.constant("a.B", 1);
  EXPECT_THAT(error_of([&] { test.registry.constant("B", 1); }), HasSubstr("already exists"));
}

}  // namespace
}  // namespace t5x::gin
