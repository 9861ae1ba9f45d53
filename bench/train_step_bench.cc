// The train step of t5_1_1 small (batch 8, inputs 128, targets 32, packed; Adafactor) against the reference
// program of the very same step: StableHLO text that jax lowered, with a JSON file that lists its arguments.
// Both run in this process, on the same plugin under the same options, one step of each in turn.
//
//   train_step_bench DIR [--steps N]     DIR holds small_f32_train_step.mlir.gz, .io.json, and the same
//   without _f32
//
// The memory of each program is that of a child process that runs it alone (--only ours|peer NAME). At last
// the program `t5x` beside this one is started as a user starts it (start.h).
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "bench/figures.h"
#include "bench/start.h"
#include "optim/adafactor.h"
#include "train/trainer.h"

namespace t5x::bench {
namespace {

std::string read_gzip(const fs::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr)
    throw_error<IoError>("cannot open '{}'; give the folder that holds the reference programs",
                         path.string());
  std::string text;
  std::vector<char> block(1 << 20);
  for (int got = 0; (got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0;)
    text.append(block.data(), static_cast<size_t>(got));
  gzclose(file);
  return text;
}

// The reference program, whose donated arguments are fed with its own results.
class Reference {
 public:
  Reference(const pjrt::Client& client, const fs::path& dir, const std::string& name)
      : text_(read_gzip(dir / (name + ".mlir.gz"))) {
    const auto io = nlohmann::json::parse(read_file(dir / (name + ".io.json")));
    std::vector<pjrt::ArgumentSpec> arguments;
    for (const auto& input : io["inputs"]) {
      if (!input["kept"].get<bool>()) continue;
      arguments.push_back({.spec = {dtype_from_name(input["dtype"].get<std::string>()),
                                    Shape(input["shape"].get<std::vector<int64_t>>())},
                           .donated = false,
                           .name = input["name"].get<std::string>()});
    }
    read_aliases(arguments);
    const double start = wall_seconds();
    executable_.emplace(client.compile(text_, arguments));
    compile_seconds_ = wall_seconds() - start;
    for (const pjrt::ArgumentSpec& argument : arguments)
      inputs_.push_back(client.to_device(initial(argument)));
  }

  void step() {
    std::vector<pjrt::Buffer*> pointers;
    for (pjrt::Buffer& input : inputs_) pointers.push_back(&input);
    std::vector<pjrt::Buffer> results = executable_->execute(std::span<pjrt::Buffer* const>(pointers));
    for (const pjrt::Buffer& result : results) result.await();
    for (const auto& [argument, result] : aliases_) inputs_[argument] = std::move(results[result]);
  }
  double compile_seconds() const { return compile_seconds_; }
  pjrt::MemoryStats memory() const { return executable_->memory_stats(); }

 private:
  // "%arg3: tensor<384xf32> {..., tf.aliasing_output = 5 : i32}"
  void read_aliases(std::vector<pjrt::ArgumentSpec>& arguments) {
    const size_t begin = text_.find("@main("), end = text_.find(") -> (", begin);
    const std::string signature = text_.substr(begin, end - begin);
    const std::regex argument("%arg(\\d+): tensor<[^>]*> \\{([^%]*)\\}");
    const std::regex alias("tf.aliasing_output = (\\d+)");
    for (std::sregex_iterator it(signature.begin(), signature.end(), argument), last; it != last; ++it) {
      std::smatch found;
      const std::string attributes = (*it)[2];
      if (!std::regex_search(attributes, found, alias)) continue;
      const auto index = static_cast<size_t>(std::stoll((*it)[1]));
      arguments[index].donated = true;
      aliases_.emplace_back(index, static_cast<size_t>(std::stoll(found[1])));
    }
  }

  // Values of ordinary size: no denormals, no infinities.
  static Array initial(const pjrt::ArgumentSpec& argument) {
    Array array(argument.spec.dtype, argument.spec.shape);
    std::mt19937 random(1);
    if (argument.spec.dtype == DType::kFloat32) {
      std::normal_distribution<float> normal(0, 0.05F);
      const bool state = argument.name.find("param_states") != std::string::npos;
      for (float& value : array.values<float>()) value = state ? 1e-4F : normal(random);
    } else if (argument.spec.dtype == DType::kInt32 && argument.spec.shape.rank() > 0) {
      const bool tokens = argument.name.find("tokens") != std::string::npos;
      for (int32_t& value : array.values<int32_t>())
        value = tokens ? static_cast<int32_t>(3 + random() % 32000) : 1;
    }
    return array;
  }

  std::string text_;
  std::optional<pjrt::Executable> executable_;
  std::vector<pjrt::Buffer> inputs_;
  std::vector<std::pair<size_t, size_t>> aliases_;
  double compile_seconds_ = 0;
};

class Ours {
 public:
  Ours(const pjrt::Client& client, DType dtype) : trainer_(client, config(dtype)) {
    std::mt19937 random(1);
    for (const auto& [name, type] : models::EncoderDecoderModel::batch_types(8, 128, 32, true)) {
      Array array(type.dtype, type.shape);
      const bool tokens = name.find("tokens") != std::string::npos;
      for (int32_t& value : array.values<int32_t>())
        value = tokens ? static_cast<int32_t>(3 + random() % 32000) : 1;
      batch_[name] = array;
    }
    program_ = &trainer_.compile_train(types_of(batch_));
    trainer_.initialize();
  }
  void step() { trainer_.train_step(batch_).get(); }
  double compile_seconds() const { return program_->compile_seconds(); }
  pjrt::MemoryStats memory() const { return program_->executable().memory_stats(); }

 private:
  static TrainerConfig config(DType dtype) {
    models::T5Config network{.vocab_size = 32128,
                             .dtype = dtype,
                             .emb_dim = 512,
                             .num_heads = 6,
                             .num_encoder_layers = 8,
                             .num_decoder_layers = 8,
                             .head_dim = 64,
                             .mlp_dim = 1024,
                             .mlp_activations = {"gelu", "linear"},
                             .dropout_rate = 0.1};
    return {
        .model = std::make_shared<models::EncoderDecoderModel>(network, models::LossConfig{.z_loss = 1e-4}),
        .optimizer = std::make_shared<optim::Adafactor>(
            optim::AdafactorHyperParams{.logical_factor_rules = optim::standard_logical_factor_rules()}),
        .learning_rate =
            optim::create_learning_rate_scheduler({.factors = "constant", .base_learning_rate = 0.001})};
  }

  Trainer trainer_;
  HostBatch batch_;
  const Program* program_ = nullptr;
};

struct Times {
  double wall = 1e30, cpu = 1e30;
};
void time_step(Times& best, const std::function<void()>& step) {
  const double wall = wall_seconds(), cpu = cpu_seconds();
  step();
  best.wall = std::min(best.wall, wall_seconds() - wall);
  best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
}

// Peak resident bytes of a child that runs three steps of one side alone.
double child_memory(const std::string& self, const std::vector<std::string>& arguments) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv{const_cast<char*>(self.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(self.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw_error<Error>("the child process for '{}' failed", arguments[1]);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

struct Case {
  std::string suffix, reference;
  DType dtype;
};
const Case kCases[] = {{"float32", "small_f32_train_step", DType::kFloat32},
                       {"bfloat16", "small_train_step", DType::kBFloat16}};

void run(const std::string& self, const fs::path& dir, int steps) {
  for (const Case& c : kCases) {
    Times ours_times, peer_times;
    {
      const pjrt::Client client = pjrt::Client::create();
      Ours ours(client, c.dtype);
      Reference peer(client, dir, c.reference);
      ours.step();
      peer.step();
      for (int i = 0; i < steps; ++i) {
        time_step(ours_times, [&] { ours.step(); });
        time_step(peer_times, [&] { peer.step(); });
      }
      print_figure("train_step_cpu_" + c.suffix, ours_times.cpu, peer_times.cpu, "CPU seconds a step");
      print_figure("train_step_wall_" + c.suffix, ours_times.wall, peer_times.wall, "seconds a step");
      print_figure("train_step_compile_" + c.suffix, ours.compile_seconds(), peer.compile_seconds(),
                   "seconds, ours with tracing");
      print_figure("train_step_planned_memory_" + c.suffix, static_cast<double>(ours.memory().total()),
                   static_cast<double>(peer.memory().total()), "bytes of arguments, results and temporaries");
    }
    const double ours_bytes = child_memory(self, {dir.string(), "--only", "ours", c.suffix});
    const double peer_bytes = child_memory(self, {dir.string(), "--only", "peer", c.suffix});
    print_figure("train_step_peak_resident_" + c.suffix, ours_bytes, peer_bytes,
                 "bytes resident, compilation included");
  }
}

int main_checked(int argc, char** argv) {
  std::string dir, only, name;
  int steps = 5;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--steps" && i + 1 < argc) {
      steps = std::atoi(argv[++i]);
    } else if (argument == "--only" && i + 2 < argc) {
      only = argv[++i];
      name = argv[++i];
    } else {
      dir = argument;
    }
  }
  if (dir.empty()) {
    std::fputs(
        "usage: train_step_bench DIR [--steps N]\nDIR holds the reference programs "
        "small_f32_train_step.mlir.gz and "
        "small_train_step.mlir.gz with their .io.json files; without them there is nothing to compare "
        "with.\n",
        stderr);
    return 2;
  }
  if (only.empty()) {
    const fs::path self = fs::read_symlink("/proc/self/exe");
    run(self.string(), dir, std::max(1, steps));
    measure_start((self.parent_path() / "t5x").string());
    return 0;
  }
  const pjrt::Client client = pjrt::Client::create();
  for (const Case& c : kCases) {
    if (c.suffix != name) continue;
    if (only == "ours") {
      Ours side(client, c.dtype);
      for (int i = 0; i < 3; ++i) side.step();
    } else {
      Reference side(client, dir, c.reference);
      for (int i = 0; i < 3; ++i) side.step();
    }
  }
  return 0;
}

}  // namespace
}  // namespace t5x::bench

int main(int argc, char** argv) {
  // Large pages for the heap, which glibc reads at start only; both programs run under it.
  if (std::getenv("GLIBC_TUNABLES") == nullptr) {
    setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
    execv("/proc/self/exe", argv);
  }
  try {
    return t5x::bench::main_checked(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
