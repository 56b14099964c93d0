-- Checks what sbatch submits with `epochzero check`, on the login node and as the user.
--
-- slurm.conf: CliFilterPlugins=cli_filter/lua, and this file next to it. A job with errors is refused, with the findings on
-- the user's terminal; `EPOCHZERO_CHECK=warn sbatch ...` submits it anyway, `EPOCHZERO_CHECK=off` skips the check.

local EPOCHZERO = "/opt/epochzero/bin/epochzero"
local SECONDS = 20

local function command_line()
    local words = {}
    local file = io.open("/proc/self/cmdline", "rb")
    if file == nil then
        return words
    end
    for word in file:read("*a"):gmatch("([^%z]*)%z") do
        words[#words + 1] = word
    end
    file:close()
    return words
end

local function quoted(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function check(words)
    local quotes = {}
    for number, word in ipairs(words) do
        quotes[number] = quoted(word)
    end
    quotes[1] = "sbatch"
    -- The script may be on standard input, which belongs to sbatch.
    local line = string.format("timeout %d %s check -- %s </dev/null 2>&1; echo $?", SECONDS, EPOCHZERO, table.concat(quotes, " "))
    local output = io.popen(line)
    local text, code = output:read("*a"):match("(.-)(%d+)%s*$") -- Lua 5.1 does not return exit codes.
    output:close()
    return code, text
end

function slurm_cli_setup_defaults(options, early)
    return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, offset)
    local words = command_line()
    local mode = os.getenv("EPOCHZERO_CHECK") or "refuse"
    if mode == "off" or #words == 0 or words[1]:match("[^/]*$") ~= "sbatch" then
        return slurm.SUCCESS
    end
    for _, word in ipairs(words) do
        -- The check itself asks the cluster with `sbatch --test-only`, which comes here again.
        if word == "--test-only" then
            return slurm.SUCCESS
        end
    end
    local code, text = check(words)
    if code ~= "1" then -- No errors, or a check that could not be made, which keeps nobody from working.
        return slurm.SUCCESS
    end
    io.stderr:write(text)
    if mode == "warn" then
        return slurm.SUCCESS
    end
    slurm.log_error("epochzero check found errors: EPOCHZERO_CHECK=warn submits the job anyway")
    return slurm.ERROR
end

function slurm_cli_post_submit(offset, job_id, step_id)
    return slurm.SUCCESS
end
