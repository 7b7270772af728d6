-- Plays one scenario after the other, each as soon as its plan is in the folder, until there is a file named "end".
return function(folder, play, clear)
  local function there(path) return vim.uv.fs_stat(path) ~= nil end
  for number = 1, 1000 do
    local next = ("%s/%d.json"):format(folder, number)
    vim.wait(600000, function() return there(next) or there(folder .. "/end") end, 5)
    if not there(next) then return end
    local plan = vim.json.decode(io.open(next):read("a"))
    if number > 1 then clear(plan) end
    play(plan)
  end
end
