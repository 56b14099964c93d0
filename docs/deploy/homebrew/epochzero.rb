# A template: fill.sh prints the formula of a release, for a tap.
class Epochzero < Formula
  include Language::Python::Virtualenv

  desc "Finds failures of deep-learning jobs before they cost GPU time"
  homepage "@URL@"
  url "@URL@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "python@3.13"

  def install
    # The dependencies are installed from wheels, since Hyperscan takes many minutes to compile.
    virtualenv_create(libexec, "python3.13")
    system "python3.13", "-m", "pip", "--python=#{libexec}/bin/python", "install", "#{buildpath}[store]"
    bin.install_symlink libexec/"bin/epochzero"
    generate_completions_from_executable(bin/"epochzero", shell_parameter_format: :click)
  end

  test do
    (testpath/"train.log").write "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'fox'\n"
    assert_match "Key Not Found", shell_output("#{bin}/epochzero diagnose train.log")
  end
end
